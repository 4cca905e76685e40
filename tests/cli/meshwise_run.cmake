# SPDX-License-Identifier: Apache-2.0
# The command line of meshwise-run. What its jobs do is tested in tests/bootstrap/launcher.cpp.
function(run_refused name expected)
  refused_by(meshwise_run run.${name} "^meshwise-run: ${expected}.*see meshwise-run --help$" ${ARGN})
endfunction()

run_refused(nothing "-n N is missing")
run_refused(no_ranks "-n N is missing" true)
run_refused(no_value "-n needs a value" -n)
run_refused(no_program "the program to start is missing" -n 4)
run_refused(nothing_after_the_options "the program to start is missing" -n 4 --)
run_refused(zero_ranks "-n needs a whole number from 1 to 256, not \"0\"" -n 0 true)
run_refused(too_many_ranks "--ranks needs a whole number from 1 to 256, not \"257\"" --ranks 257 true)
run_refused(ranks_no_number "-n needs a whole number.*\"four\"" -n four true)
run_refused(ranks_attached "-n needs a whole number.*\"4x\"" -n4x true)
run_refused(ranks_huge "--ranks needs.*\"18446744073709551617\"" --ranks=18446744073709551617 true)
run_refused(unknown_option "unknown option \"--rank\"" -n 2 --rank 3 true)
run_refused(unknown_letter "unknown option \"-c\"" -c 2 true)
run_refused(np_no_number "-np needs a whole number.*\"true\"" -np true)
run_refused(switch_with_value "--label takes no value" -n 2 --label=yes true)
run_refused(bind "--bind needs none or core, not \"socket\"" -n 2 --bind socket true)
run_refused(grace "--grace needs a number of seconds.*\"-1\"" -n 2 --grace -1 true)
run_refused(grace_nan "--grace needs a number of seconds.*\"nan\"" -n 2 --grace nan true)
run_refused(timeout "--timeout needs a number of seconds.*\"5m\"" -n 2 --timeout=5m true)
run_refused(export_unset "-x needs NAME=VALUE" -n 2 -x MESHWISE_TEST_NOT_SET true)

refused_by(meshwise_run run.export_no_name "NAME=VALUE.*\"=3\"" -n 2 -x =3 true)
refused_by(meshwise_run run.export_of_the_launcher "leave MESHWISE_RANK to it" -n 2 -x MESHWISE_RANK=0 true)

# run_ends(NAME CODE OUT ERR ARGUMENTS...): regular expressions for what it writes.
function(run_ends name code out err)
  string(REPLACE ";" "|" arguments "${ARGN}")
  add_test(NAME cli.run.${name}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:meshwise_run> "-DARGUMENTS=${arguments}" -DCODE=${code}
            "-DOUT=${out}" "-DERR=${err}" -P "${CMAKE_CURRENT_SOURCE_DIR}/ends.cmake")
  set_tests_properties(cli.run.${name} PROPERTIES TIMEOUT 60)
endfunction()

run_ends(help 0 "^usage: meshwise-run -n N .*--keep-going.*MESHWISE_JOB.*Exit code:" "^$" --help)
run_ends(help_wins 0 "^usage: " "^$" -n 4 --help true)
run_ends(version 0 "^meshwise-run ${PROJECT_VERSION}\n$" "^$" --version)
run_ends(good 0 "^yes\nyes\nyes\n$" "^$" -n 3 echo yes)
run_ends(attached 0 "^yes\nyes\n$" "^$" -n2 echo yes)
run_ends(np 0 "^yes\nyes\n$" "^$" -np 2 echo yes)
run_ends(long 0 "^yes\nyes\n$" "^$" --ranks=2 --grace=1 --bind=core --timeout 60 -- echo yes)
run_ends(options_of_the_program 0 "^x -n 5 --help\n$" "^$" -n 1 echo x -n 5 --help)
run_ends(label 0 "\\[1\\] text\n" "^$" -l -n 2 echo text)
run_ends(environment 0 "^a b\na b\n$" "^$" -n 2 -x "NAME=a b" -x PATH printenv NAME)
run_ends(code 3 "^$" "^meshwise-run: rank [01] .pid [0-9]+. exited with code 3\n$" -n 2 sh -c "exit 3")
run_ends(killed 137 "^$" "rank 1 .pid [0-9]+. was killed by signal 9 .Killed." -n 2 sh -c
  "if test \$MESHWISE_RANK = 1\\; then kill -9 \$\$\\; fi")
run_ends(not_found 127 "^$" "^meshwise-run: cannot execute .no-such-program.: not found in PATH\n$" -n 2 no-such-program)
run_ends(not_executable 126 "^$" "^meshwise-run: cannot execute ./etc.: Is a directory" -n 2 /etc)
run_ends(late 124 "^$" "did not end within 0.2 s. still running: ranks 0 and 1\n" -n 2 --timeout 0.2 sleep 60)
run_ends(keep_going 1 "^end\n$" "rank 1" -n 2 --keep-going sh -c
  "if test \$MESHWISE_RANK = 1\\; then exit 1\\; fi\\; sleep 0.3\\; echo end")
