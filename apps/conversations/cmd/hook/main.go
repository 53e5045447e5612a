// Command hook takes one event of a conversation, as JSON on standard input. It is `conversations hook` without all that the
// hook does not need, because its caller waits: 13 MB instead of 100.
package main

import (
	"context"
	"os"

	"github.com/sluice-queue/sluice/apps/conversations/hook"
)

func main() { os.Exit(hook.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout)) }
