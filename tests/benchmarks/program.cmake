# SPDX-License-Identifier: Apache-2.0
# cmake -D PROGRAM=... -D FAULTY=... [-D RUN=meshwise-run] -D FOLDER=... -P program.cmake
set(wrong "")
# ends(NAME CODE OUT ERR WORDS...): the exit code, and regular expressions for what is written.
function(ends name code out err)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE got OUTPUT_VARIABLE text ERROR_VARIABLE errors)
  if(NOT got STREQUAL code OR NOT text MATCHES "${out}" OR NOT errors MATCHES "${err}")
    string(APPEND wrong "${name}: expected ${code}, \"${out}\", \"${err}\"; found ${got}\n${text}\n${errors}\n")
    set(wrong "${wrong}" PARENT_SCOPE)
  endif()
endfunction()
function(expect name found expected)
  if(NOT found MATCHES "${expected}")
    string(APPEND wrong "${name}: expected \"${expected}\", found \"${found}\"\n")
    set(wrong "${wrong}" PARENT_SCOPE)
  endif()
endfunction()

set(quick -b 8 -e 4K -f 512 -n 3 -w 1)
set(json "${FOLDER}/bench.json")
set(html "${FOLDER}/bench.html")
ends(processes 0 "# Using ranks.*Rank  1.*a process.*\n +8 +2 +float +sum .*\n +4096 .*Out of bounds values : 0 OK" "^$"
  "${PROGRAM}" all_reduce ${quick} --json "${json}" --html "${html}")
file(READ "${json}" document)
string(JSON points ERROR_VARIABLE error LENGTH "${document}" points)
expect(points "${points}" "^2$")
string(JSON count ERROR_VARIABLE error GET "${document}" points 1 in_place wrong)
expect(wrong "${count}" "^0$")
file(READ "${html}" page LIMIT 200)
expect(page "${page}" "^<!DOCTYPE html>")
ends(threads 0 "all_to_all_v on 3 ranks, thread.*Out of bounds values : 0 OK.*barrier on 3 ranks" "^$"
  "${PROGRAM}" all_to_all_v barrier ${quick} --fabric thread -g 3 --ragged --peers "${json}" --html "${html}")
ends(cold 0 "foreign, cold.*Out of bounds values : 0 OK" "^$"
  "${PROGRAM}" reduce_scatter ${quick} --cold --buffers foreign -d int32 -o prod --algorithm ring,direct)
ends(rewritten 0 "registered, rewritten" "^$" "${PROGRAM}" broadcast ${quick} --rewrite -c 0)
ends(unfit 0 "# left out: bruck" "^$" "${PROGRAM}" all_reduce ${quick} --algorithm bruck)
ends(help 0 "^usage: meshwise-bench" "^$" "${PROGRAM}" --help)

foreach(fabric IN ITEMS thread shared_memory)
  ends(fault_${fabric} 1 "Out of bounds values : [1-9][0-9]* FAILED" "^$"
    "${FAULTY}" all_reduce ${quick} --fabric ${fabric} --json "${json}")
endforeach()
file(READ "${json}" document)
string(JSON count ERROR_VARIABLE error GET "${document}" points 0 out_of_place wrong)
expect(fault "${count}" "^1$")

ends(operation 2 "^$"
  "^meshwise-bench: operation: \"allreduce\" cannot be used; choose from all_reduce.*see meshwise-bench --help\n$"
  "${PROGRAM}" allreduce)
ends(file 2 "^$" "^meshwise-bench: --json: /nowhere/x cannot be written" "${PROGRAM}" --json /nowhere/x)
ends(fabric 2 "^$" "^meshwise-bench: MESHWISE_FABRIC" ${CMAKE_COMMAND} -E env MESHWISE_FABRIC=tcp "${PROGRAM}")

if(RUN)
  ends(joined 0 "all_gather on 3 ranks, shared_memory.*Out of bounds values : 0 OK" "^$"
    "${RUN}" -n 3 "${PROGRAM}" all_gather ${quick} -r 2)
  ends(joined_fault 1 "FAILED" "" "${RUN}" -n 2 "${FAULTY}" all_reduce ${quick})
  ends(joined_root 2 "^$" "--root 5 is no rank of 2" "${RUN}" -n 2 "${PROGRAM}" broadcast -r 5 -g 8)
endif()

if(wrong)
  message(FATAL_ERROR "${wrong}")
endif()
