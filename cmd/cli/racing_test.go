//go:build race && unix

package cli_test

// racing says that the tests run with the race detector.
const racing = true
