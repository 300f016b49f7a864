// stdio in C++: a condition that declares, a reference to a member, nullptr, a static member, C-style casts.
//: STATUS main sliced
//: STATUS Log::record sliced
//: KEEPS FILE *file = prefetch_fopen("data", "rb");
//: KEEPS long &place = log.place;
//: KEEPS fetch_fread(&skip, 1, 1, file)
//: KEEPS Log::stride
//: DROPS puts
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <unistd.h>

struct Log {
	static long stride;
	long place = 0;
	unsigned sum = 0;
	static long limit() { return stride * 40; }
	void record(FILE *file, char (&text)[20])
	{
		if (std::fread(text, 1, sizeof text, file) == sizeof text)
			sum += (unsigned char)text[3];
	}
};

long Log::stride = 500;

int main()
{
	Log log;
	char text[20];
	if (FILE *file = fopen("data", "rb"); file != nullptr) {
		long &place = log.place;
		while (place < Log::limit()) {
			unsigned char skip = 0;
			std::fseek(file, place, SEEK_SET);
			fread(&skip, 1, 1, file);
			log.record(file, text);
			place += Log::stride + skip;
		}
		std::fclose(file);
	} else {
		puts("nothing");
	}
	printf("%u\n", log.sum);
	usleep(200000);
	return 0;
}
