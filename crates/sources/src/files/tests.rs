//! The paper's figures, and the models checked against each other.

use super::*;
