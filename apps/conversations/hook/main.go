package hook

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"

	"github.com/sluice-queue/sluice/apps/conversations/logs"
	"github.com/sluice-queue/sluice/apps/conversations/reference"
)

// FileFlag is the flag that says where the file is.
func FileFlag(flags *flag.FlagSet) *string {
	home, _ := os.UserHomeDir() // without one it is in the working folder
	path := os.Getenv("CONVERSATIONS_DB")
	if path == "" {
		path = filepath.Join(home, ".conversations", "conversations.db")
	}
	return flags.String("db", path, "the SQLite file; CONVERSATIONS_DB")
}

// Main is the command. It never fails its caller, unless it is asked to: what is wrong is in the log.
func Main(ctx context.Context, args []string, in io.Reader, out io.Writer) int {
	flags := flag.NewFlagSet("hook", flag.ContinueOnError)
	db := FileFlag(flags)
	log := flags.String("log", "", "the file that gets errors (default: that of -db with .log)")
	failExit := flags.Int("fail-exit", 0, "the exit code when the event could not be taken")
	hashKey := flags.String("hash-key", "", "env:NAME or file:PATH of the key of the hashes of what was removed (default: another one each time)")
	tell := flags.Bool("tell", false, "print what was taken, as JSON, without any text of it")
	if err := flags.Parse(args); err != nil {
		return *failExit
	}
	if *log == "" {
		*log = *db + ".log"
	}
	taken, err := takeInto(ctx, *db, *hashKey, in)
	if err == nil && *tell {
		err = json.NewEncoder(out).Encode(taken)
	}
	if err == nil {
		return 0
	}
	if logger, closer, opened := logs.Open(*log); opened == nil {
		logger.Error("event refused", "error", err)
		_ = closer.Close()
	}
	return *failExit
}

func takeInto(ctx context.Context, db, hashKey string, in io.Reader) (Taken, error) {
	o := Options{DB: db}
	if hashKey != "" {
		key, err := reference.Secret(hashKey)
		if err != nil {
			return Taken{}, err
		}
		o.HashKey = []byte(key)
	}
	if err := os.MkdirAll(filepath.Dir(db), 0o700); err != nil {
		return Taken{}, err
	}
	return Take(ctx, in, o)
}
