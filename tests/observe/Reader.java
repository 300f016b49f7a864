import java.io.FileInputStream;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Reads through a stream, a random access file and a channel. */
public class Reader {
    public static void main(String[] args) throws Exception {
        byte[] block = new byte[1000];
        try (FileInputStream stream = new FileInputStream(args[0])) {
            stream.read(block);
            stream.skip(500);
            stream.read(block);
        }
        try (RandomAccessFile file = new RandomAccessFile(args[0], "r")) {
            file.seek(12288);
            file.read(block);
        }
        try (FileChannel channel = FileChannel.open(Path.of(args[0]), StandardOpenOption.READ)) {
            channel.read(ByteBuffer.allocateDirect(4096), 8192);
            channel.read(ByteBuffer.allocateDirect(100));
        }
    }
}
