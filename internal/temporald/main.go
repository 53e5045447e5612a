// Command temporald builds the Temporal server of tools/temporal if need be, and becomes it. Its flags
// are those of the server: -help lists them.
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
