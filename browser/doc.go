// Package browser tests the console as people use it: in Chromium, with the mouse and with the keyboard, against a real
// `sluice` that works on SQLite.
//
// Begin with main_test.go, which starts both once for all tests. A tab of a test fails it at errors of scripts, at
// violations of the policy of the page, and at requests to elsewhere. `make screenshots` writes pictures of all pages.
package browser
