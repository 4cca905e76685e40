# SPDX-License-Identifier: Apache-2.0
# The harness must accept the good case and give the right reason for rejecting each faulty one.
cmake_minimum_required(VERSION 3.25)

function(judge name expected_result expected_text)  # COMMAND...
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  # Messages are wrapped; compare them on one line.
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(expected_result STREQUAL "passes" AND NOT result EQUAL 0)
    message(SEND_ERROR "${name} should pass: ${output}")
  elseif(expected_result STREQUAL "fails" AND result EQUAL 0)
    message(SEND_ERROR "${name} should fail: ${output}")
  elseif(NOT output MATCHES "${expected_text}")
    message(SEND_ERROR "${name} should say \"${expected_text}\": ${output}")
  endif()
endfunction()

function(check name expected_result expected_text)
  judge(${name} ${expected_result} "${expected_text}"
    ${CMAKE_COMMAND} -D "SOURCE=${CMAKE_CURRENT_LIST_DIR}/${name}.cpp" -D "FAMILY=${FAMILY}" -D "COMPILER=${COMPILER}"
    -P "${CMAKE_CURRENT_LIST_DIR}/../check.cmake")
endfunction()

# The same beside a good case in one unit.
function(check_in_group name expected_result expected_text)
  judge("${name} in a group" ${expected_result} "${expected_text}"
    ${CMAKE_COMMAND} -D "SOURCES=${CMAKE_CURRENT_LIST_DIR}/${name}.cpp|${CMAKE_CURRENT_LIST_DIR}/good.cpp"
    -D "ROOT=${CMAKE_CURRENT_LIST_DIR}" -D "OUTPUT=${FOLDER}/${name}.cpp" -D "INCLUDE=${INCLUDE}" -D "FAMILY=${FAMILY}"
    -D "COMPILER=${COMPILER}" -P "${CMAKE_CURRENT_LIST_DIR}/../group.cmake")
endfunction()

check(good passes "first error: .*refused<")
check(mistake_compiles fails "the mistake compiles")
check(wrong_text fails "the first error does not match")
check(wrong_note fails "nothing about the first error matches")
check(error_in_header fails "the first error stands elsewhere")
check(twin_broken fails "the twin does not compile")
check(no_expectation fails "no expectation")

check_in_group(another passes "another: .*refused<.*good, by itself: .*refused<")
check_in_group(mistake_compiles fails "the mistake compiles")
check_in_group(wrong_text fails "the first error does not match")
check_in_group(wrong_note fails "nothing about the first error matches")
check_in_group(error_in_header fails "the first error stands elsewhere")
check_in_group(twin_broken fails "a twin does not compile")
check_in_group(no_expectation fails "no expectation")
