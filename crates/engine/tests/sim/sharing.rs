//! Several sessions in one memory: AIMD shares it out.
