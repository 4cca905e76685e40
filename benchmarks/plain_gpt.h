// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The yardstick of gpt_speed: the model of examples/gpt trained by plain C, on one thread, with the same CBLAS. One
/// file, one block of memory, no types but float: what somebody writes who needs this one model on one processor only.

typedef struct {
  size_t vocab, sequence, hidden, heads, ffn, layers, batch;
} plain_gpt_sizes;

typedef struct {
  double learning_rate, beta1, beta2, epsilon, weight_decay, clip; /* clip: largest norm of the gradient; 0: none */
} plain_gpt_adamw;

/// A matrix product that a step contains: C[m, n] (+)= op(A) op(B), how often, and how long all of them computed together.
typedef struct {
  int transpose_a, transpose_b, adds, m, n, k, lda, ldb, ldc;
  uint64_t calls;
  double seconds;
} plain_gpt_product;

/// The parameters; those of a block are PLAIN_GPT_NORM1_GAIN to PLAIN_GPT_DOWN_BIAS. The columns of qkv are those of
/// the queries, then of the keys, then of the values, head by head.
enum {
  PLAIN_GPT_EMBEDDING,
  PLAIN_GPT_POSITION,
  PLAIN_GPT_QKV_WEIGHT,
  PLAIN_GPT_OUTPUT_WEIGHT,
  PLAIN_GPT_UP_WEIGHT,
  PLAIN_GPT_DOWN_WEIGHT,
  PLAIN_GPT_NORM1_GAIN,
  PLAIN_GPT_NORM1_BIAS,
  PLAIN_GPT_QKV_BIAS,
  PLAIN_GPT_OUTPUT_BIAS,
  PLAIN_GPT_NORM2_GAIN,
  PLAIN_GPT_NORM2_BIAS,
  PLAIN_GPT_UP_BIAS,
  PLAIN_GPT_DOWN_BIAS,
  PLAIN_GPT_FINAL_GAIN,
  PLAIN_GPT_FINAL_BIAS,
  PLAIN_GPT_KINDS
};

typedef struct plain_gpt plain_gpt;

/// A model of zeros; NULL without memory. The caller fills the parameters and ends it with plain_gpt_free.
plain_gpt* plain_gpt_new(const plain_gpt_sizes* sizes);
void plain_gpt_free(plain_gpt* gpt);

/// The elements of a parameter, row-major, and how many they are; `layer` counts for those of a block.
float* plain_gpt_parameter(plain_gpt* gpt, int kind, size_t layer, size_t* size);

/// One step on batch * sequence tokens and targets: forward, backward, clipping, AdamW. `step` counts from 1. Returns
/// the mean loss before the step.
double plain_gpt_step(plain_gpt* gpt, const int32_t* tokens, const int32_t* targets, uint64_t step,
                      const plain_gpt_adamw* options);

/// The products of all steps so far, and how many kinds there are.
const plain_gpt_product* plain_gpt_products(const plain_gpt* gpt, size_t* count);

/// Performs a product on the caller's matrices, without noting it.
void plain_gpt_multiply(const plain_gpt_product* product, const float* a, const float* b, float* c);

#ifdef __cplusplus
}
#endif
