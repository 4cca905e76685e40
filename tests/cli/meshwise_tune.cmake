# SPDX-License-Identifier: Apache-2.0
# The command line of meshwise-tune; what it measures is tested in tests/tools/tune.cpp.
function(tune_refused name expected)
  refused_by(meshwise_tune tune.${name} "^meshwise-tune: ${expected}.*see meshwise-tune --help$" ${ARGN})
endfunction()

tune_refused(ranks "--ranks needs whole numbers from 2 to 256, not \"1\"" --ranks 2,1)
tune_refused(operations "--operations does not know \"allreduce\"" --operations allreduce)
tune_refused(unknown "unknown option \"--rank\"" --rank 2)

# tune_ends(NAME CODE OUT ERR ARGUMENTS...): regular expressions for what it writes.
function(tune_ends name code out err)
  string(REPLACE ";" "|" arguments "${ARGN}")
  add_test(NAME cli.tune.${name}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:meshwise_tune> "-DARGUMENTS=${arguments}" -DCODE=${code}
            "-DOUT=${out}" "-DERR=${err}" -P "${CMAKE_CURRENT_SOURCE_DIR}/ends.cmake")
  set_tests_properties(cli.tune.${name} PROPERTIES TIMEOUT 60)
endfunction()

tune_ends(help 0 "^usage: meshwise-tune .*MESHWISE_TUNING.*--seconds.*Exit code:" "^$" --help)
tune_ends(nowhere 1 "^$" "^meshwise-tune: --output: expected to write no/such/folder/t, found No such file"
          --output no/such/folder/t)

# A table is written, is right, and changes what a program does; one that is broken stops it with the line.
set(table "${CMAKE_CURRENT_BINARY_DIR}/table.txt")
add_test(NAME cli.tune.measure COMMAND meshwise_tune --ranks 2 --operations all_reduce --ways memory -b 4K -e 4K
         --seconds 1 --output "${table}")
add_test(NAME cli.tune.check COMMAND meshwise_tune --check "${table}")
set_tests_properties(cli.tune.measure PROPERTIES TIMEOUT 60 RUN_SERIAL ON FIXTURES_SETUP measured_table)
set_tests_properties(cli.tune.check PROPERTIES TIMEOUT 60 FIXTURES_REQUIRED measured_table
                     PASS_REGULAR_EXPRESSION "2 rules, measured here, 1 for thread, 1 for shared_memory")
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/broken_table.txt" "meshwise-table 1\nall_reduce thread memory 2 0-inf rnig\n")
tune_ends(broken 1 "^$" "broken_table.txt:2: expected an algorithm: .*, found \"rnig\""
          --check "${CMAKE_CURRENT_BINARY_DIR}/broken_table.txt")
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/other_table.txt" "meshwise-table 1\ncores 9999\n")
tune_ends(elsewhere 1 "measured with cores 9999, here is .*: programs ignore it" "^$"
          --check "${CMAKE_CURRENT_BINARY_DIR}/other_table.txt")
