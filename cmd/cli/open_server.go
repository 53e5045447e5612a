package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/remote"
)

// openServer opens the store behind a server.
func (a *app) openServer(ctx context.Context, at address) (sluice.Store, error) {
	token, err := readToken(a.token)
	if err != nil {
		return nil, err
	}
	store, err := remote.Open(ctx, at.server, remote.Options{Token: token, CallTimeout: a.timeout})
	if err != nil {
		return nil, err
	}
	return a.observeStore(store, at), nil
}

// readToken returns a token, or that of the file after an @.
func readToken(given string) (string, error) {
	path, inFile := strings.CutPrefix(given, "@")
	if !inFile {
		return given, nil
	}
	if rest, home := strings.CutPrefix(path, "~/"); home {
		folder, err := os.UserHomeDir()
		if err != nil {
			return "", usagef("--token %s: %w", given, err)
		}
		path = filepath.Join(folder, rest)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the person names the file
	if err != nil {
		return "", codedError{usagef("--token %s: %w", given, err), exitUsage, "write the secret of `sluice tokens create` into the file"}
	}
	return strings.TrimSpace(string(text)), nil
}

// databaseCommands need the address of the database itself.
var databaseCommands = []string{"migrate", "serve", "upkeep", "dispatch", "forward", "move", "demo", "demo-worker"}

// checkAddress refuses a server's address for commands that need the database.
func (a *app) checkAddress(command *cobra.Command) error {
	top := command
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	throughServer := command.CommandPath() == "sluice upkeep now"
	if remote.IsAddress(a.db) && slices.Contains(databaseCommands, top.Name()) && !throughServer {
		return needsDatabase(top.Name())
	}
	return nil
}

// needsDatabase says that a command needs the database.
func needsDatabase(command string) error {
	return codedError{
		usagef("--db names a server, and %s works on the database itself", command), exitUsage,
		fmt.Sprintf("run `sluice %s` beside the server, with --db sqlite:PATH or --db postgres://USER@HOST/DATABASE", command),
	}
}
