//go:build amd64 || arm64

// This file is empty: with it, the compiler allows functions without a body, which
// guard_linux.go links to those of the runtime.
