// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names that system headers of some platform define as macros. A header that uses one of them fails to compile here.
// (Lower-case `min` and `max` are not here: only Windows defines them, and the library is for Linux.)

#define MESHWISE_TEST_POISON 0a_macro_of_a_system_header_was_used_as_a_name

// <complex.h>
#define I MESHWISE_TEST_POISON

// <termios.h>, <sys/ttydefaults.h>
#define B0 MESHWISE_TEST_POISON
#define B50 MESHWISE_TEST_POISON
#define B1200 MESHWISE_TEST_POISON
#define ECHO MESHWISE_TEST_POISON
#define CEND MESHWISE_TEST_POISON

// <sys/sysmacros.h>, <sys/param.h>
#define major(device) MESHWISE_TEST_POISON
#define minor(device) MESHWISE_TEST_POISON
#define makedev(one, two) MESHWISE_TEST_POISON
#define howmany(x, y) MESHWISE_TEST_POISON
#define roundup(x, y) MESHWISE_TEST_POISON
#define powerof2(x) MESHWISE_TEST_POISON
#define setbit(x, y) MESHWISE_TEST_POISON
#define isset(x, y) MESHWISE_TEST_POISON
#define MIN(x, y) MESHWISE_TEST_POISON
#define MAX(x, y) MESHWISE_TEST_POISON

// <ctype.h> of BSD and Bionic
#define _L MESHWISE_TEST_POISON
#define _U MESHWISE_TEST_POISON
#define _N MESHWISE_TEST_POISON
#define _X MESHWISE_TEST_POISON

// <windows.h>
#define near MESHWISE_TEST_POISON
#define far MESHWISE_TEST_POISON
#define small MESHWISE_TEST_POISON
#define interface MESHWISE_TEST_POISON
#define IN MESHWISE_TEST_POISON
#define OUT MESHWISE_TEST_POISON
#define ERROR MESHWISE_TEST_POISON
#define DELETE MESHWISE_TEST_POISON
#define VOID MESHWISE_TEST_POISON

// <X11/X.h>, <X11/Xlib.h>
#define None MESHWISE_TEST_POISON
#define Bool MESHWISE_TEST_POISON
#define Status MESHWISE_TEST_POISON
#define Success MESHWISE_TEST_POISON
#define True MESHWISE_TEST_POISON
#define False MESHWISE_TEST_POISON

// GNU dialects define these without being asked.
#undef unix
#undef linux
#define unix MESHWISE_TEST_POISON
#define linux MESHWISE_TEST_POISON

// Others' assertion and logging macros
#define CHECK(x) MESHWISE_TEST_POISON
#define ASSERT(x) MESHWISE_TEST_POISON
#define LOG(x) MESHWISE_TEST_POISON
