package hook

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

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
	_ = os.MkdirAll(filepath.Dir(*db), 0o700) // where it cannot be made, the event goes to another folder
	logger, closer := logOf(*log)
	defer func() { _ = closer.Close() }()
	taken, err := Take(ctx, in, Options{DB: *db, HashKey: keyOf(*hashKey, logger), Logger: logger})
	if err == nil && *tell {
		err = json.NewEncoder(out).Encode(taken)
	}
	if err == nil {
		return 0
	}
	logger.Error("event refused", "error", err)
	return *failExit
}

// logOf opens the log, once there is a line for it: most hooks have none. Where it cannot be opened, the caller gets the line
// on its standard error.
func logOf(path string) (*slog.Logger, io.Closer) {
	file := &lateFile{path: path}
	return logs.New(file), file
}

type lateFile struct {
	path string
	mu   sync.Mutex
	file *os.File
}

func (l *lateFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		file, err := logs.File(l.path)
		if err != nil {
			return os.Stderr.Write(line)
		}
		l.file = file
	}
	return l.file.Write(line)
}

func (l *lateFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// keyOf reads the key of the hashes. Without it the event is taken all the same, with a key of its own.
func keyOf(ref string, logger *slog.Logger) []byte {
	if ref == "" {
		return nil
	}
	key, err := reference.Secret(ref)
	if err != nil {
		logger.Error("no key of the hashes; this event has one of its own", "error", err)
		return nil
	}
	return []byte(key)
}
