! Reads four blocks of its own at explicit offsets, then two by the individual pointer, in the file that argv(1) names.
program reads
    use mpi_f08
    implicit none
    integer :: code, rank, ranks, round
    type(MPI_File) :: file
    type(MPI_Status) :: status
    integer(kind=MPI_OFFSET_KIND) :: at
    integer(kind=4) :: data(1024)
    character(len=1024) :: name
    call MPI_INIT(code)
    call MPI_COMM_RANK(MPI_COMM_WORLD, rank, code)
    call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, code)
    call get_command_argument(1, name)
    call MPI_FILE_OPEN(MPI_COMM_WORLD, trim(name), MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
    do round = 0, 3
        at = int(round * ranks + rank, MPI_OFFSET_KIND) * 4096
        call MPI_FILE_READ_AT(file, at, data, 1024, MPI_INTEGER, status, code)
    end do
    at = int(rank, MPI_OFFSET_KIND) * 65536
    call MPI_FILE_SET_VIEW(file, at, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, code)
    call MPI_FILE_READ_ALL(file, data, 1024, MPI_INTEGER, MPI_STATUS_IGNORE, code)
    call MPI_FILE_READ(file, data, 512, MPI_INTEGER, status, code)
    call MPI_FILE_CLOSE(file, code)
    call MPI_FINALIZE(code)
end program reads
