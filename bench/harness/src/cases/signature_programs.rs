//! Other people's programs whose reads follow a pattern: hyperslabs, a column of a raster, a region of an array in
//! chunks, a blur that swaps its tiles.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::data::fill;
use super::packages::NetcdfSeries;
use super::signature::ALL;
use crate::case::{Case, Group, Job, Purpose, Size, Start, Workload};
use crate::process::Invocation;
use crate::tools::{Tools, shell};

/// `ncks`: hyperslabs of a NetCDF variable, through all times and levels.
struct Hyperslabs {
    /// The hyperslabs to read; and those of an earlier run, if foreread may have learnt from one.
    slabs: &'static [&'static str],
    learn: Option<&'static [&'static str]>,
}

/// `gdal_translate`: one column of a GeoTIFF in tiles.
struct RasterColumn {
    column: &'static str,
    learn: Option<&'static str>,
}

/// `h5dump`: a region of an HDF5 array in chunks.
struct ChunkedRegion {
    start: &'static str,
    learn: Option<&'static str>,
}

/// `gegl`: a blur of an image larger than its tile cache.
struct Blur;

/// Those that start with nothing known, then those that learnt from another input.
pub fn cases() -> Vec<Case> {
    let case = |name, about, needs, work| Case {
        name,
        group: Group::Signature,
        about,
        disks: ALL,
        quick: &[],
        needs,
        purpose: Purpose::Gain,
        start: Start::Cold,
        work,
    };
    const NCKS: &[(&str, &str)] = &[("ncks", "nco"), ("ncgen", "netcdf-bin")];
    const GDAL: &[(&str, &str)] = &[("gdal_translate", "gdal-bin")];
    const HDF5: &[(&str, &str)] = &[("h5dump", "hdf5-tools"), ("h5import", "hdf5-tools")];
    const SLABS: &[&str] = &["lat,100,260,40", "lon,180"];
    vec![
        case(
            "sig-ncks",
            "ncks: hyperslabs of a NetCDF file",
            NCKS,
            Box::new(Hyperslabs {
                slabs: SLABS,
                learn: None,
            }) as Box<dyn Workload>,
        ),
        case(
            "sig-raster",
            "gdal_translate: a column of a tiled GeoTIFF",
            GDAL,
            Box::new(RasterColumn {
                column: "1000",
                learn: None,
            }),
        ),
        case(
            "sig-chunks",
            "h5dump: a region of a chunked HDF5 array",
            HDF5,
            Box::new(ChunkedRegion {
                start: "0,128,64",
                learn: None,
            }),
        ),
        case(
            "sig-gegl",
            "gegl: blur of an image in swapped tiles",
            &[("gegl", "gegl")],
            Box::new(Blur),
        ),
        case(
            "other-ncks",
            "ncks: other hyperslabs of the file",
            NCKS,
            Box::new(Hyperslabs {
                slabs: SLABS,
                learn: Some(&["lat,20,220,40", "lon,75"]),
            }),
        ),
        case(
            "other-gdal",
            "gdal_translate: another column",
            GDAL,
            Box::new(RasterColumn {
                column: "1000",
                learn: Some("3000"),
            }),
        ),
        case(
            "other-h5",
            "h5dump: another region",
            HDF5,
            Box::new(ChunkedRegion {
                start: "0,128,64",
                learn: Some("0,32,16"),
            }),
        ),
    ]
}

/// A program of the system with these arguments, a first and a last part.
fn command(program: &str, arguments: &[&str], dir: &Path, files: [OsString; 2]) -> Invocation {
    Invocation {
        program: program.into(),
        args: arguments.iter().map(Into::into).chain(files).collect(),
        cwd: dir.to_owned(),
        env: Vec::new(),
    }
}

impl Workload for Hyperslabs {
    fn data_name(&self) -> &'static str {
        NetcdfSeries.data_name()
    }

    fn generate(&self, dir: &Path, size: Size, tools: &Tools) -> Result<()> {
        NetcdfSeries.generate(dir, size, tools)
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
        let (file, out) = (dir.join(NetcdfSeries::FILE), scratch.join("out.nc"));
        let ncks = |slabs: &[&str]| {
            // -h: no history attribute, which would hold the date.
            let mut arguments = vec!["-O", "-h"];
            arguments.extend(slabs.iter().flat_map(|slab| ["-d", slab]));
            command(
                "ncks",
                &arguments,
                dir,
                [file.clone().into(), out.clone().into()],
            )
        };
        Ok(Job {
            command: ncks(self.slabs),
            learn: self.learn.map(ncks),
            files: vec![file.clone()],
            outputs: vec![out.clone()],
            ..Job::default()
        })
    }
}

/// The raster's size in pixels of a byte, and its tiles': a column is in 1,024 tiles of 16 KiB, 512 KiB apart.
const RASTER: (u64, u64) = (4096, 131_072);
const TILE: u64 = 128;

impl Workload for RasterColumn {
    fn data_name(&self) -> &'static str {
        "raster"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        let (samples, lines) = RASTER;
        fill(&dir.join("pixels"), samples * lines, 25)?;
        let header = format!(
            "ENVI\nsamples = {samples}\nlines = {lines}\nbands = 1\nheader offset = 0\ndata type = 1\n\
             interleave = bsq\nbyte order = 0\n"
        );
        fs::write(dir.join("pixels.hdr"), header).context("writing pixels.hdr")?;
        shell(
            dir,
            &format!(
                "gdal_translate -q -of GTiff -co TILED=YES -co BLOCKXSIZE={TILE} -co BLOCKYSIZE={TILE} \
                 pixels raster.tif; rm pixels*"
            ),
        )
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
        let (file, out) = (dir.join("raster.tif"), scratch.join("column"));
        let lines = RASTER.1.to_string();
        let gdal = |column: &str| {
            let arguments = ["-q", "-of", "ENVI", "-srcwin", column, "0", "1", &lines];
            command(
                "gdal_translate",
                &arguments,
                dir,
                [file.clone().into(), out.clone().into()],
            )
        };
        Ok(Job {
            command: gdal(self.column),
            learn: self.learn.map(gdal),
            files: vec![file.clone()],
            outputs: vec![out.clone()],
            ..Job::default()
        })
    }
}

/// 512 x 512 x 128 floats in chunks of 16 x 16 x 16, 16 KiB each, as h5import takes them.
const ARRAY: &str = "\
PATH /v
INPUT-CLASS FP
INPUT-SIZE 32
INPUT-BYTE-ORDER LE
RANK 3
DIMENSION-SIZES 512 512 128
OUTPUT-CLASS FP
OUTPUT-SIZE 32
OUTPUT-BYTE-ORDER LE
CHUNKED-DIMENSION-SIZES 16 16 16
";
/// A region of 32 x 16 x 1 chunks, one of eight along the fastest dimension.
const REGION: &str = "512,256,16";

impl Workload for ChunkedRegion {
    fn data_name(&self) -> &'static str {
        "chunks"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        fill(&dir.join("values"), 512 * 512 * 128 * 4, 26)?;
        fs::write(dir.join("layout"), ARRAY).context("writing layout")?;
        shell(
            dir,
            "h5import values -c layout -o array.h5; rm values layout",
        )
    }

    fn job(&self, dir: &Path, scratch: &Path, _: Size, _: &Tools) -> Result<Job> {
        let (file, out) = (dir.join("array.h5"), scratch.join("region"));
        let h5dump = |start: &str| {
            let arguments = ["-d", "/v", "-s", start, "-c", REGION, "-b", "LE", "-o"];
            command(
                "h5dump",
                &arguments,
                dir,
                [out.clone().into(), file.clone().into()],
            )
        };
        Ok(Job {
            command: h5dump(self.start),
            learn: self.learn.map(h5dump),
            files: vec![file.clone()],
            outputs: vec![out.clone()],
            ..Job::default()
        })
    }
}

/// Pixels along a side of the image; in memory, a pixel takes 16 bytes.
const SIDE: u64 = 3072;
/// The tile cache, in MiB, and all the memory the program may use: what it has swapped out leaves memory.
const TILE_CACHE_MIB: u64 = 16;
const BLUR_MEMORY: u64 = 160 << 20;

impl Workload for Blur {
    fn data_name(&self) -> &'static str {
        "blur"
    }

    fn generate(&self, dir: &Path, _: Size, _: &Tools) -> Result<()> {
        fill(&dir.join("pixels"), SIDE * SIDE * 3, 27)?;
        shell(
            dir,
            &format!(
                "printf 'P6\\n{SIDE} {SIDE}\\n255\\n' > image.ppm; cat pixels >> image.ppm; rm pixels"
            ),
        )
    }

    fn job(&self, dir: &Path, _: &Path, _: Size, _: &Tools) -> Result<Job> {
        let (image, made) = (dir.join("image.ppm"), dir.join("made"));
        let out = made.join("blurred.ppm");
        let args = [image.as_os_str(), "-o".as_ref(), out.as_os_str()];
        let blur = ["--", "gegl:gaussian-blur", "std-dev-x=8", "std-dev-y=8"];
        Ok(Job {
            command: Invocation {
                program: "gegl".into(),
                args: args
                    .into_iter()
                    .map(Into::into)
                    .chain(blur.map(Into::into))
                    .collect(),
                cwd: dir.to_owned(),
                env: vec![
                    ("GEGL_CACHE_SIZE".into(), TILE_CACHE_MIB.to_string().into()),
                    ("GEGL_SWAP".into(), made.clone().into()),
                    // With two, on a slow disk, some runs wrote another image: GEGL's own warnings tell of a swap file whose
                    // gaps do not add up. One is also quicker: 1.3 s against 3.5 s on a local disk.
                    ("GEGL_THREADS".into(), "1".into()),
                ],
            },
            files: vec![image],
            outputs: vec![out],
            fresh_dir: Some(made),
            memory_limit: Some(BLUR_MEMORY),
            ..Job::default()
        })
    }
}
