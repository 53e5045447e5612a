// Package browser tests the console as people use it: in Chromium, with the mouse and with the keyboard, against a real
// `sluice` that works on SQLite, and where a store is frozen, on PostgreSQL.
//
// Begin with main_test.go, which starts both once for all tests. A tab of a test fails it at errors of scripts, at
// violations of the policy of the page, and at requests to elsewhere. `make screenshots` writes pictures of all pages, and
// `go test -run=none -bench=FirstPaint .` measures when a slow computer paints them.
package browser
