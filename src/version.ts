// The version that the `boot` line shows; a test keeps it equal to package.json's.
export const VERSION = "0.1.0"
