/* The talk's worked example, slide by slide: files A and B of 450 bytes, a client, three regions, a list, and a
 * program that follows the list, leaves it, and uses it up. */
#include "check.h"
#include "libprefetch.h"

static int A, B;
static prefetch_client c;

static struct {
	int calls;
	void *arg;
	int marked_fd, requested_fd;
	int64_t marked_offset, requested_offset;
} told;

static int supply;

static void callback(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		     int64_t requested_offset)
{
	told.calls++;
	told.arg = arg;
	told.marked_fd = marked_fd;
	told.marked_offset = marked_offset;
	told.requested_fd = requested_fd;
	told.requested_offset = requested_offset;
	if (supply) {
		struct access_entry a_list[] = {{B, 150, 0}, {A, 200, 1}};

		SAME(request_prefetching(c, a_list, 2, PF_SET | PF_DONE), 2);
	}
}

static void told_of(int calls, int marked_fd, int64_t marked_offset, int requested_fd,
		    int64_t requested_offset)
{
	SAME(told.calls, calls);
	CHECK(told.arg == NULL);
	SAME(told.marked_fd, marked_fd);
	SAME(told.marked_offset, marked_offset);
	SAME(told.requested_fd, requested_fd);
	SAME(told.requested_offset, requested_offset);
}

int main(int argc, char **argv)
{
	int r1, r2, r3;
	int64_t n;

	CHECK(argc > 1);
	A = make_file(argv[1], "A", 450);
	B = make_file(argv[1], "B", 450);

	/* "c = register_client(callback, NULL);" */
	c = register_client(callback, NULL);
	CHECK(c != NULL);

	/* The regions: A 75 to 350, B 100 to 200 and 300 to 400. */
	r1 = register_region(c, A, 75, 350);
	r2 = register_region(c, B, 100, 200);
	r3 = register_region(c, B, 300, 400);
	CHECK(r1 >= 0 && r2 >= 0 && r3 >= 0);
	CHECK(r1 != r2 && r2 != r3 && r1 != r3);

	/* "n = request_prefetching(c, a_list, 3, PF_SET | PF_DONE);": all accepted. */
	{
		struct access_entry a_list[] = {{A, 100, 1}, {B, 150, 0}, {A, 200, 1}};

		n = request_prefetching(c, a_list, 3, PF_SET | PF_DONE);
	}
	SAME(n, 3);
	SAME(told.calls, 0);

	/* "pread(A, ..., 100);": on the list, so no callback. */
	read_byte(A, 100);
	SAME(told.calls, 0);

	/* "pread(B, ..., 350);": "Access list doesn't match. Callback into application to update
	 * it": callback(NULL, A, 100, B, 350), which sets {B, 150, 0} and {A, 200, 1}. */
	supply = 1;
	read_byte(B, 350);
	told_of(1, A, 100, B, 350);

	/* "pread(A, ..., 400);": in no region, so not matched. */
	read_byte(A, 400);
	SAME(told.calls, 1);

	/* "pread(A, ..., 200);": "End of access list, callback to get more information." */
	supply = 0;
	read_byte(A, 200);
	told_of(2, A, 200, A, 200);

	SAME(unregister_region(c, r2), 0);
	SAME(unregister_client(c), 0);
	read_byte(B, 350);
	SAME(told.calls, 2);
	return 0;
}
