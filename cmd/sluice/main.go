// Command sluice is the durable dispatch queue from the command line; see `sluice help`.
package main

import (
	"os"
	_ "time/tzdata" // settings may name time zones, and not every machine has them

	"github.com/sluice-queue/sluice/cmd/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
