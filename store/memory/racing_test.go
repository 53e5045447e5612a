//go:build race

package memory_test

// sequences is how many random sequences a test runs.
const sequences = "100"
