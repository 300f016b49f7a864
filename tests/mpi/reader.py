# Reads a file by mpi4py, each rank its blocks; with "slabs" it reads hyperslabs of an HDF5 file by h5py, each rank its columns.
import hashlib
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()
digest = hashlib.sha256()
if sys.argv[2:] == ["slabs"]:
    import h5py

    with h5py.File(sys.argv[1], "r", driver="mpio", comm=comm) as file:
        field = file["field"]
        width = field.shape[1] // ranks
        for row in range(0, field.shape[0], 64):
            digest.update(field[row : row + 64, rank * width : (rank + 1) * width].tobytes())
else:
    block = bytearray(65536)
    file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDONLY)
    for at in range(rank, file.Get_size() // len(block), ranks):
        file.Read_at(at * len(block), block)
        digest.update(block)
    file.Close()
# One write, which the output of other ranks does not split.
sys.stdout.write(f"rank {rank}: {digest.hexdigest()}\n")
