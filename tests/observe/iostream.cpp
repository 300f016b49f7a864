// C++ file streams: formatted, unformatted, seeking.
#include <fstream>
#include <string>
int main(int argc, char **argv) {
    std::ifstream file(argv[argc - 1]);
    std::string line;
    for (int i = 0; i < 600; i++)
        if (!std::getline(file, line))
            return 1;
    int number;
    if (!(file >> number) || number != 600)
        return 2;
    file.seekg(16384);
    if (!(file >> number) || number != 2048)
        return 3;
    char block[8000];
    file.seekg(0);
    file.read(block, sizeof block);
    return file.gcount() == sizeof block ? 0 : 4;
}
