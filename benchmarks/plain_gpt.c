// SPDX-License-Identifier: Apache-2.0
#include "plain_gpt.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_PRODUCTS = 64 };

/* What the backward needs of a block. */
typedef struct {
  float *x, *mean1, *scale1, *a, *qkv, *p, *o, *y, *mean2, *scale2, *b, *h, *u;
} saved_block;

struct plain_gpt {
  plain_gpt_sizes s;
  size_t parameters, weights; /* all of them, and those that decay, which stand first */
  float *w, *g, *m, *v;       /* parameters, gradients, moments */
  size_t offset[PLAIN_GPT_KINDS], size[PLAIN_GPT_KINDS];
  float* activations;
  saved_block* saved;
  float *last, *mean, *scale, *normed, *logits; /* after the blocks */
  float *dres, *dx, *dqkv, *dp, *dh;            /* gradients of activations, one block at a time */
  plain_gpt_product products[MOST_PRODUCTS];
  size_t kinds_of_products;
};

static int of_block(int kind) { return kind >= PLAIN_GPT_QKV_WEIGHT && kind <= PLAIN_GPT_DOWN_BIAS; }

static size_t place(const plain_gpt* gpt, int kind, size_t layer) {
  return gpt->offset[kind] + (of_block(kind) ? layer * gpt->size[kind] : 0);
}
static float* weight(const plain_gpt* gpt, int kind, size_t layer) { return gpt->w + place(gpt, kind, layer); }
static float* gradient(const plain_gpt* gpt, int kind, size_t layer) { return gpt->g + place(gpt, kind, layer); }

float* plain_gpt_parameter(plain_gpt* gpt, int kind, size_t layer, size_t* size) {
  *size = gpt->size[kind];
  return weight(gpt, kind, layer);
}

/* Hands out the next floats of the block of activations, on a cache line; of a null pointer only their place. */
static float* take(float* base, size_t* used, size_t count) {
  float* const result = base == NULL ? NULL : base + *used;
  *used += (count + 15) / 16 * 16;
  return result;
}

static size_t lay_out(plain_gpt* gpt, float* base) {
  const plain_gpt_sizes* s = &gpt->s;
  const size_t n = s->batch * s->sequence, h = s->hidden, scores = s->batch * s->heads * s->sequence * s->sequence;
  size_t used = 0;
  for (size_t l = 0; l < s->layers; ++l) {
    saved_block* k = &gpt->saved[l];
    k->x = take(base, &used, n * h);
    k->mean1 = take(base, &used, n);
    k->scale1 = take(base, &used, n);
    k->a = take(base, &used, n * h);
    k->qkv = take(base, &used, n * 3 * h);
    k->p = take(base, &used, scores);
    k->o = take(base, &used, n * h);
    k->y = take(base, &used, n * h);
    k->mean2 = take(base, &used, n);
    k->scale2 = take(base, &used, n);
    k->b = take(base, &used, n * h);
    k->h = take(base, &used, n * s->ffn);
    k->u = take(base, &used, n * s->ffn);
  }
  gpt->last = take(base, &used, n * h);
  gpt->mean = take(base, &used, n);
  gpt->scale = take(base, &used, n);
  gpt->normed = take(base, &used, n * h);
  gpt->logits = take(base, &used, n * s->vocab);
  gpt->dres = take(base, &used, n * h);
  gpt->dx = take(base, &used, n * h);
  gpt->dqkv = take(base, &used, n * 3 * h);
  gpt->dp = take(base, &used, s->sequence * s->sequence);
  gpt->dh = take(base, &used, n * s->ffn);
  return used;
}

static float* zeros(size_t count) {
  float* const memory = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
  if (memory != NULL) memset(memory, 0, count * sizeof(float));
  return memory;
}

plain_gpt* plain_gpt_new(const plain_gpt_sizes* sizes) {
  plain_gpt* const gpt = calloc(1, sizeof *gpt);
  if (gpt == NULL) return NULL;
  gpt->s = *sizes;
  const size_t h = sizes->hidden, f = sizes->ffn;
  const size_t size[PLAIN_GPT_KINDS] = {sizes->vocab * h, sizes->sequence * h, h * 3 * h, h * h, h * f, f * h, h, h,
                                        3 * h, h, h, h, f, h, h, h};
  for (int kind = 0; kind < PLAIN_GPT_KINDS; ++kind) {
    gpt->size[kind] = size[kind];
    gpt->offset[kind] = gpt->parameters;
    gpt->parameters += size[kind] * (of_block(kind) ? sizes->layers : 1);
    if (kind == PLAIN_GPT_DOWN_WEIGHT) gpt->weights = gpt->parameters;
  }
  gpt->w = zeros(gpt->parameters);
  gpt->g = zeros(gpt->parameters);
  gpt->m = zeros(gpt->parameters);
  gpt->v = zeros(gpt->parameters);
  gpt->saved = calloc(sizes->layers + 1, sizeof *gpt->saved);
  if (gpt->saved != NULL) gpt->activations = zeros(lay_out(gpt, NULL));
  if (gpt->w == NULL || gpt->g == NULL || gpt->m == NULL || gpt->v == NULL || gpt->activations == NULL) {
    plain_gpt_free(gpt);
    return NULL;
  }
  lay_out(gpt, gpt->activations);
  return gpt;
}

void plain_gpt_free(plain_gpt* gpt) {
  if (gpt == NULL) return;
  free(gpt->w);
  free(gpt->g);
  free(gpt->m);
  free(gpt->v);
  free(gpt->saved);
  free(gpt->activations);
  free(gpt);
}

const plain_gpt_product* plain_gpt_products(const plain_gpt* gpt, size_t* count) {
  *count = gpt->kinds_of_products;
  return gpt->products;
}

void plain_gpt_multiply(const plain_gpt_product* p, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans, p->transpose_b ? CblasTrans : CblasNoTrans,
              p->m, p->n, p->k, 1.0F, a, p->lda, b, p->ldb, p->adds ? 1.0F : 0.0F, c, p->ldc);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* not what a busy machine gives to others */
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A product with the letters of BLAS for what is transposed, noted under its sizes. */
static void multiply(plain_gpt* gpt, const char* transposed, int adds, size_t m, size_t n, size_t k, const float* a,
                     size_t lda, const float* b, size_t ldb, float* c, size_t ldc) {
  plain_gpt_product p = {transposed[0] == 't', transposed[1] == 't', adds,     (int)m, (int)n, (int)k,
                         (int)lda,             (int)ldb,             (int)ldc, 1,      0};
  const double begin = now();
  plain_gpt_multiply(&p, a, b, c);
  p.seconds = now() - begin;
  plain_gpt_product* q = gpt->products;
  plain_gpt_product* const end = q + gpt->kinds_of_products;
  while (q != end && (q->m != p.m || q->n != p.n || q->k != p.k || q->transpose_a != p.transpose_a ||
                      q->transpose_b != p.transpose_b || q->adds != adds || q->lda != p.lda || q->ldb != p.ldb)) {
    ++q;
  }
  if (q != end) {
    ++q->calls;
    q->seconds += p.seconds;
  } else if (gpt->kinds_of_products < MOST_PRODUCTS) {
    *q = p;
    ++gpt->kinds_of_products;
  }
}

/* Rows that begin as the bias, for a product to be added. */
static void fill_rows(float* restrict out, const float* restrict bias, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) memcpy(out + r * n, bias, n * sizeof *out);
}

/* out = x + bias: the residual stream and the bias, before the product that is added to them. */
static void begin_residual(float* restrict out, const float* restrict x, const float* restrict bias, size_t rows,
                           size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < n; ++i) out[r * n + i] = x[r * n + i] + bias[i];
  }
}

static void add_up_rows(float* restrict sums, const float* restrict x, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < n; ++i) sums[i] += x[r * n + i];
  }
}

static void norm(float* restrict out, float* restrict mean, float* restrict scale, const float* restrict x,
                 const float* restrict gain, const float* restrict bias, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r, x += n, out += n) {
    float sum = 0, squares = 0;
    for (size_t i = 0; i < n; ++i) sum += x[i];
    const float m = sum / (float)n;
    for (size_t i = 0; i < n; ++i) squares += (x[i] - m) * (x[i] - m);
    const float s = 1.0F / sqrtf(squares / (float)n + 1e-5F);
    for (size_t i = 0; i < n; ++i) out[i] = (x[i] - m) * s * gain[i] + bias[i];
    mean[r] = m;
    scale[r] = s;
  }
}

/* dx (+)= the gradient at x, given dy. */
static void norm_backward(float* restrict dx, int adds, float* restrict dgain, float* restrict dbias,
                          const float* restrict dy, const float* restrict x, const float* restrict mean,
                          const float* restrict scale, const float* restrict gain, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r, x += n, dy += n, dx += n) {
    const float m = mean[r], s = scale[r];
    float sum = 0, dot = 0;
    for (size_t i = 0; i < n; ++i) {
      const float unit = (x[i] - m) * s, d = dy[i] * gain[i];
      sum += d;
      dot += d * unit;
      dgain[i] += dy[i] * unit;
      dbias[i] += dy[i];
    }
    sum /= (float)n;
    dot /= (float)n;
    if (adds) {
      for (size_t i = 0; i < n; ++i) dx[i] += s * (dy[i] * gain[i] - sum - (x[i] - m) * s * dot);
    } else {
      for (size_t i = 0; i < n; ++i) dx[i] = s * (dy[i] * gain[i] - sum - (x[i] - m) * s * dot);
    }
  }
}

/* x/2 (1 + tanh u) = x / (1 + exp(-2u)), with 2u = x (c1 + c3 x^2). */
static const float gelu_c1 = 2 * 0.7978845608F, gelu_c3 = 2 * 0.7978845608F * 0.044715F;

static void gelu(float* restrict out, const float* restrict x, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = x[i] / (1.0F + expf(-x[i] * (gelu_c1 + gelu_c3 * x[i] * x[i])));
}

/* d *= gelu'(x), and the sums of its columns, which are the gradient of the bias. */
static void gelu_backward(float* restrict d, float* restrict sums, const float* restrict x, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r, d += n, x += n) {
    for (size_t i = 0; i < n; ++i) {
      const float square = x[i] * x[i];
      const float s = 1.0F / (1.0F + expf(-x[i] * (gelu_c1 + gelu_c3 * square)));
      d[i] *= s + x[i] * s * (1.0F - s) * (gelu_c1 + 3 * gelu_c3 * square);
      sums[i] += d[i];
    }
  }
}

/* Soft-max of factor * the scores of earlier positions; the others become 0. */
static void causal_softmax(float* restrict p, size_t n, float factor) {
  for (size_t q = 0; q < n; ++q, p += n) {
    float top = p[0], sum = 0;
    for (size_t i = 0; i <= q; ++i) top = p[i] > top ? p[i] : top;
    for (size_t i = 0; i <= q; ++i) {
      p[i] = expf(factor * (p[i] - top));
      sum += p[i];
    }
    const float scale = 1.0F / sum;
    for (size_t i = 0; i <= q; ++i) p[i] *= scale;
    memset(p + q + 1, 0, (n - q - 1) * sizeof *p);
  }
}

static void causal_softmax_backward(float* restrict d, const float* restrict p, size_t n, float factor) {
  for (size_t q = 0; q < n; ++q, p += n, d += n) {
    float dot = 0;
    for (size_t i = 0; i <= q; ++i) dot += d[i] * p[i];
    for (size_t i = 0; i <= q; ++i) d[i] = factor * p[i] * (d[i] - dot);
    memset(d + q + 1, 0, (n - q - 1) * sizeof *d);
  }
}

/* The mean loss of the logits, which become their own gradient. */
static double cross_entropy(float* restrict z, const int32_t* restrict targets, size_t rows, size_t n) {
  double loss = 0;
  const float each = 1.0F / (float)rows;
  for (size_t r = 0; r < rows; ++r, z += n) {
    float top = z[0], sum = 0;
    for (size_t i = 0; i < n; ++i) top = z[i] > top ? z[i] : top;
    const float target = z[targets[r]] - top;
    for (size_t i = 0; i < n; ++i) {
      z[i] = expf(z[i] - top);
      sum += z[i];
    }
    loss += logf(sum) - target;
    const float scale = each / sum;
    for (size_t i = 0; i < n; ++i) z[i] *= scale;
    z[targets[r]] -= each;
  }
  return loss / (double)rows;
}

static double forward(plain_gpt* gpt, const int32_t* tokens, const int32_t* targets) {
  const plain_gpt_sizes* s = &gpt->s;
  const size_t n = s->batch * s->sequence, t = s->sequence, h = s->hidden, f = s->ffn, d = h / s->heads;
  const float* embedding = weight(gpt, PLAIN_GPT_EMBEDDING, 0);
  const float* position = weight(gpt, PLAIN_GPT_POSITION, 0);
  float* x = s->layers == 0 ? gpt->last : gpt->saved[0].x;
  for (size_t r = 0; r < n; ++r) {
    begin_residual(x + r * h, embedding + (size_t)tokens[r] * h, position + r % t * h, 1, h);
  }
  for (size_t l = 0; l < s->layers; ++l) {
    saved_block* k = &gpt->saved[l];
    norm(k->a, k->mean1, k->scale1, k->x, weight(gpt, PLAIN_GPT_NORM1_GAIN, l), weight(gpt, PLAIN_GPT_NORM1_BIAS, l), n,
         h);
    fill_rows(k->qkv, weight(gpt, PLAIN_GPT_QKV_BIAS, l), n, 3 * h);
    multiply(gpt, "nn", 1, n, 3 * h, h, k->a, h, weight(gpt, PLAIN_GPT_QKV_WEIGHT, l), 3 * h, k->qkv, 3 * h);
    for (size_t i = 0; i < s->batch * s->heads; ++i) {
      const size_t from = i / s->heads * t, column = i % s->heads * d;
      const float* q = k->qkv + from * 3 * h + column;
      float* p = k->p + i * t * t;
      multiply(gpt, "nt", 0, t, t, d, q, 3 * h, q + h, 3 * h, p, t);
      causal_softmax(p, t, 1.0F / sqrtf((float)d));
      multiply(gpt, "nn", 0, t, d, t, p, t, q + 2 * h, 3 * h, k->o + from * h + column, h);
    }
    begin_residual(k->y, k->x, weight(gpt, PLAIN_GPT_OUTPUT_BIAS, l), n, h);
    multiply(gpt, "nn", 1, n, h, h, k->o, h, weight(gpt, PLAIN_GPT_OUTPUT_WEIGHT, l), h, k->y, h);
    norm(k->b, k->mean2, k->scale2, k->y, weight(gpt, PLAIN_GPT_NORM2_GAIN, l), weight(gpt, PLAIN_GPT_NORM2_BIAS, l), n,
         h);
    fill_rows(k->h, weight(gpt, PLAIN_GPT_UP_BIAS, l), n, f);
    multiply(gpt, "nn", 1, n, f, h, k->b, h, weight(gpt, PLAIN_GPT_UP_WEIGHT, l), f, k->h, f);
    gelu(k->u, k->h, n * f);
    float* const next = l + 1 == s->layers ? gpt->last : gpt->saved[l + 1].x;
    begin_residual(next, k->y, weight(gpt, PLAIN_GPT_DOWN_BIAS, l), n, h);
    multiply(gpt, "nn", 1, n, h, f, k->u, f, weight(gpt, PLAIN_GPT_DOWN_WEIGHT, l), h, next, h);
  }
  norm(gpt->normed, gpt->mean, gpt->scale, gpt->last, weight(gpt, PLAIN_GPT_FINAL_GAIN, 0),
       weight(gpt, PLAIN_GPT_FINAL_BIAS, 0), n, h);
  multiply(gpt, "nt", 0, n, s->vocab, h, gpt->normed, h, embedding, h, gpt->logits, s->vocab);
  return cross_entropy(gpt->logits, targets, n, s->vocab);
}

static void backward(plain_gpt* gpt, const int32_t* tokens) {
  const plain_gpt_sizes* s = &gpt->s;
  const size_t n = s->batch * s->sequence, t = s->sequence, h = s->hidden, f = s->ffn, d = h / s->heads;
  float *dres = gpt->dres, *dx = gpt->dx, *dqkv = gpt->dqkv, *dp = gpt->dp, *dh = gpt->dh;
  memset(gpt->g, 0, gpt->parameters * sizeof *gpt->g);
  multiply(gpt, "tn", 0, s->vocab, h, n, gpt->logits, s->vocab, gpt->normed, h, gradient(gpt, PLAIN_GPT_EMBEDDING, 0),
           h);
  multiply(gpt, "nn", 0, n, h, s->vocab, gpt->logits, s->vocab, weight(gpt, PLAIN_GPT_EMBEDDING, 0), h, dx, h);
  norm_backward(dres, 0, gradient(gpt, PLAIN_GPT_FINAL_GAIN, 0), gradient(gpt, PLAIN_GPT_FINAL_BIAS, 0), dx, gpt->last,
                gpt->mean, gpt->scale, weight(gpt, PLAIN_GPT_FINAL_GAIN, 0), n, h);
  for (size_t l = s->layers; l-- > 0;) {
    const saved_block* k = &gpt->saved[l];
    add_up_rows(gradient(gpt, PLAIN_GPT_DOWN_BIAS, l), dres, n, h);
    multiply(gpt, "tn", 0, f, h, n, k->u, f, dres, h, gradient(gpt, PLAIN_GPT_DOWN_WEIGHT, l), h);
    multiply(gpt, "nt", 0, n, f, h, dres, h, weight(gpt, PLAIN_GPT_DOWN_WEIGHT, l), h, dh, f);
    gelu_backward(dh, gradient(gpt, PLAIN_GPT_UP_BIAS, l), k->h, n, f);
    multiply(gpt, "tn", 0, h, f, n, k->b, h, dh, f, gradient(gpt, PLAIN_GPT_UP_WEIGHT, l), f);
    multiply(gpt, "nt", 0, n, h, f, dh, f, weight(gpt, PLAIN_GPT_UP_WEIGHT, l), f, dx, h);
    norm_backward(dres, 1, gradient(gpt, PLAIN_GPT_NORM2_GAIN, l), gradient(gpt, PLAIN_GPT_NORM2_BIAS, l), dx, k->y,
                  k->mean2, k->scale2, weight(gpt, PLAIN_GPT_NORM2_GAIN, l), n, h);

    add_up_rows(gradient(gpt, PLAIN_GPT_OUTPUT_BIAS, l), dres, n, h);
    multiply(gpt, "tn", 0, h, h, n, k->o, h, dres, h, gradient(gpt, PLAIN_GPT_OUTPUT_WEIGHT, l), h);
    multiply(gpt, "nt", 0, n, h, h, dres, h, weight(gpt, PLAIN_GPT_OUTPUT_WEIGHT, l), h, dx, h);
    for (size_t i = 0; i < s->batch * s->heads; ++i) {
      const size_t from = i / s->heads * t, column = i % s->heads * d;
      const float* q = k->qkv + from * 3 * h + column;
      const float *p = k->p + i * t * t, *dout = dx + from * h + column;
      float* dq = dqkv + from * 3 * h + column;
      multiply(gpt, "tn", 0, t, d, t, p, t, dout, h, dq + 2 * h, 3 * h);
      multiply(gpt, "nt", 0, t, t, d, dout, h, q + 2 * h, 3 * h, dp, t);
      causal_softmax_backward(dp, p, t, 1.0F / sqrtf((float)d));
      multiply(gpt, "nn", 0, t, d, t, dp, t, q + h, 3 * h, dq, 3 * h);
      multiply(gpt, "tn", 0, t, d, t, dp, t, q, 3 * h, dq + h, 3 * h);
    }
    add_up_rows(gradient(gpt, PLAIN_GPT_QKV_BIAS, l), dqkv, n, 3 * h);
    multiply(gpt, "tn", 0, h, 3 * h, n, k->a, h, dqkv, 3 * h, gradient(gpt, PLAIN_GPT_QKV_WEIGHT, l), 3 * h);
    multiply(gpt, "nt", 0, n, h, 3 * h, dqkv, 3 * h, weight(gpt, PLAIN_GPT_QKV_WEIGHT, l), 3 * h, dx, h);
    norm_backward(dres, 1, gradient(gpt, PLAIN_GPT_NORM1_GAIN, l), gradient(gpt, PLAIN_GPT_NORM1_BIAS, l), dx, k->x,
                  k->mean1, k->scale1, weight(gpt, PLAIN_GPT_NORM1_GAIN, l), n, h);
  }
  float *embedding = gradient(gpt, PLAIN_GPT_EMBEDDING, 0), *position = gradient(gpt, PLAIN_GPT_POSITION, 0);
  for (size_t r = 0; r < n; ++r) {
    add_up_rows(embedding + (size_t)tokens[r] * h, dres + r * h, 1, h);
    add_up_rows(position + r % t * h, dres + r * h, 1, h);
  }
}

static void update(plain_gpt* gpt, uint64_t step, const plain_gpt_adamw* o) {
  double squares = 0;
  for (size_t i = 0; i < gpt->parameters; ++i) squares += (double)gpt->g[i] * (double)gpt->g[i];
  const double size = sqrt(squares);
  const float shrink = (float)(o->clip > 0 && size > o->clip ? o->clip / size : 1.0);
  const float beta1 = (float)o->beta1, beta2 = (float)o->beta2, epsilon = (float)o->epsilon;
  const float bias1 = (float)(1.0 / (1.0 - pow(o->beta1, (double)step)));
  const float bias2 = (float)(1.0 / (1.0 - pow(o->beta2, (double)step)));
  const float rate = (float)o->learning_rate;
  float *restrict w = gpt->w, *restrict m = gpt->m, *restrict v = gpt->v;
  const float* restrict gradients = gpt->g;
  for (int decays = 1; decays >= 0; --decays) {
    const float keep = decays ? (float)(1.0 - o->learning_rate * o->weight_decay) : 1.0F;
    const size_t end = decays ? gpt->weights : gpt->parameters;
    for (size_t i = decays ? 0 : gpt->weights; i < end; ++i) {
      const float g = gradients[i] * shrink;
      m[i] = beta1 * m[i] + (1.0F - beta1) * g;
      v[i] = beta2 * v[i] + (1.0F - beta2) * g * g;
      w[i] = keep * w[i] - rate * (m[i] * bias1) / (sqrtf(v[i] * bias2) + epsilon);
    }
  }
}

double plain_gpt_step(plain_gpt* gpt, const int32_t* tokens, const int32_t* targets, uint64_t step,
                      const plain_gpt_adamw* options) {
  const double loss = forward(gpt, tokens, targets);
  backward(gpt, tokens);
  update(gpt, step, options);
  return loss;
}
