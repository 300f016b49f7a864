/* Reads a file differently from its list, so that a report has a difference. secure.rs runs it as a set-user-ID program, and
 * with hostile files in the places that the environment names. */
#include "check.h"
#include "foreread.h"

#include <sys/auxv.h>

int main(int argc, char **argv)
{
	foreread_client *c = NULL;
	foreread_entry entry = {0, 0, 0, 4096};
	char byte;

	CHECK(argc > 1);
	entry.fd = open(argv[1], O_RDONLY);
	CHECK(entry.fd >= 0);
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, entry.fd, 0, UINT64_MAX) >= 0);
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), 1);
	SAME(pread(entry.fd, &byte, 1, 8192), 1);
	SAME(foreread_unregister_client(c), 0);
	printf("secure %lu, euid %u\n", getauxval(AT_SECURE), (unsigned)geteuid());
	return 0;
}
