// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../examples/gpt/trainer.hpp"
#include "../parallel/support.hpp"

namespace test {

/// The tokens of a step from a sequence on, and those that follow them: functions of step and position only.
inline gpt::Batch batch_of(const gpt::Grid& mesh, const gpt::Sizes& z, std::uint64_t step, std::size_t sequences,
                           std::size_t first = 0) {
  const auto tokens = [&](std::uint64_t shift) {
    return generate<gpt::Tokens>(mesh, {sequences, z.sequence}, [&](const auto& index) {
      const std::uint64_t b = first + index.template position<batch>(), s = index.template position<seq>() + shift;
      // Half noise, half a rule that can be learnt.
      const std::uint64_t noise = random_bits(stream_seed(77, step), b * 1000 + s);
      return static_cast<std::int32_t>((noise % 4 == 0 ? noise / 4 : b + 3 * s) % z.vocab);
    });
  };
  return {tokens(0), tokens(1)};
}

/// The same batch in some parts, as even as they can be.
inline std::vector<gpt::Batch> micro_batches_of(const gpt::Grid& mesh, const gpt::Sizes& z, std::uint64_t step,
                                                std::size_t sequences, std::size_t parts) {
  std::vector<gpt::Batch> all;
  for (std::size_t m = 0; m < parts; ++m) {
    const std::size_t begin = sequences * m / parts, end = sequences * (m + 1) / parts;
    all.push_back(batch_of(mesh, z, step, end - begin, begin));
  }
  return all;
}

/// Every parameter whole, in the order of the model. Collective.
struct Named {
  std::string name;
  std::vector<double> values;
  friend bool operator==(const Named&, const Named&) = default;
};
inline std::vector<Named> parameters_of(gpt::Trainer& trainer) {
  std::vector<Named> all;
  trainer.each_parameter([&](const std::string& name, const std::vector<double>& values) {
    all.push_back({name, values});
  });
  return all;
}

/// How many ranks there are along the axes of the GPT's mesh.
struct MeshShape {
  int data = 1, context = 1, tensor = 1;

  int ranks() const { return data * context * tensor; }
};
inline std::string shape_name(const MeshShape& s) {
  return "dp " + std::to_string(s.data) + ", cp " + std::to_string(s.context) + ", tp " + std::to_string(s.tensor);
}

/// All shapes of so many ranks.
inline std::vector<MeshShape> shapes_of(int ranks) {
  std::vector<MeshShape> all;
  for (int d = 1; d <= ranks; ++d) {
    for (int c = 1; c <= ranks / d; ++c) {
      if (ranks % (d * c) == 0) all.push_back({d, c, ranks / (d * c)});
    }
  }
  return all;
}

/// Runs a program on a mesh of that shape.
inline void on_mesh(const MeshShape& shape, const std::function<void(const gpt::Grid&)>& program) {
  LaunchOptions options;
  options.deadline = 120;
  launch(shape.ranks(), options, [&](Communicator& world) {
    const gpt::Grid mesh(world, {shape.data, shape.context, shape.tensor});
    program(mesh);
  });
}

/// One run: what every step measured, and the parameters at the end, which replicas have agreed on to the bit.
struct Run {
  std::vector<gpt::StepResult> results;
  std::vector<Named> parameters;
};

inline Run run(const MeshShape& shape, const gpt::Sizes& z, const gpt::Training& t, std::size_t sequences,
               std::size_t micro_batches = 1) {
  std::vector<Run> all(static_cast<std::size_t>(shape.ranks()));
  on_mesh(shape, [&](const gpt::Grid& mesh) {
    Run& own = all[static_cast<std::size_t>(mesh.world().rank())];
    const auto trainer = gpt::make_trainer(mesh, z, t);
    for (std::uint64_t step = 1; step <= t.steps; ++step) {
      own.results.push_back(trainer->step(micro_batches_of(mesh, z, step, sequences, micro_batches)));
    }
    own.parameters = parameters_of(*trainer);
  });
  for (const Run& other : all) {
    for (std::size_t i = 0; i < other.results.size(); ++i) {
      require(other.results[i].loss == all[0].results[i].loss, "ranks have different losses");
      require(other.results[i].gradient_norm == all[0].results[i].gradient_norm, "ranks have different norms");
    }
    require(other.parameters == all[0].parameters, "ranks have different parameters");
  }
  return std::move(all[0]);
}

/// The largest relative differences between two runs.
struct Distance {
  double loss = 0, norm = 0, parameters = 0;
};
inline Distance distance(const Run& found, const Run& expected) {
  const auto relative = [](double a, double b) { return std::abs(a - b) / std::abs(b); };
  Distance d;
  for (std::size_t i = 0; i < expected.results.size(); ++i) {
    d.loss = std::max(d.loss, relative(found.results[i].loss, expected.results[i].loss));
    d.norm = std::max(d.norm, relative(found.results[i].gradient_norm, expected.results[i].gradient_norm));
  }
  double difference = 0, size = 0;
  for (std::size_t p = 0; p < expected.parameters.size(); ++p) {
    const auto& a = found.parameters[p].values;
    const auto& b = expected.parameters[p].values;
    for (std::size_t i = 0; i < b.size(); ++i) {
      difference += (a[i] - b[i]) * (a[i] - b[i]);
      size += b[i] * b[i];
    }
  }
  d.parameters = std::sqrt(difference / size);
  return d;
}

/// Sizes that nothing divides by two or by four.
inline constexpr gpt::Sizes odd_sizes{
    .vocab = 29, .sequence = 13, .hidden = 18, .heads = 5, .head_dim = 3, .ffn = 37, .layers = 3};

}  // namespace test
