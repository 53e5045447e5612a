// Package clients tests the clients for other languages, each against a server on SQLite and one on PostgreSQL. It is a module of
// its own, which is not released.
//
// Begin with clients_test.go. The clients are in python and typescript.
package clients
