// Command temporald starts the Temporal server of tools/temporal in place of itself, and builds it
// first if needed. Its flags are the server's; -help lists them.
//
// Begin with package internal/temporaltest, which builds the server in its function Install.
//
// Read next: docs/guide/temporal.md for Sluice with Temporal.
package main

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/sluice-queue/sluice/internal/temporaltest"
)

func main() {
	program, err := temporaltest.Install(context.Background())
	if err == nil {
		err = syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, "temporald:", err)
	os.Exit(1)
}
