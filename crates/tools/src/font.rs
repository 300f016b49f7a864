//! The font of all drawings in pixels. It is part of the program, so a machine without fonts draws the same.

use std::sync::Once;

use anyhow::{Result, anyhow};
use epaint_default_fonts::HACK_REGULAR;
use plotters::style::{FontStyle, register_font};

/// The font's name in plotters.
pub(crate) const FONT: &str = "sans-serif";

/// Registers the font with plotters.
///
/// # Errors
/// When the font cannot be read.
pub(crate) fn ready() -> Result<()> {
    static KNOWN: Once = Once::new();
    let mut known = Ok(());
    KNOWN.call_once(|| {
        known = [FontStyle::Normal, FontStyle::Bold]
            .into_iter()
            .try_for_each(|style| register_font(FONT, style, HACK_REGULAR));
    });
    known.map_err(|_| anyhow!("the font of what is drawn cannot be read"))
}
