package hook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
)

// Spool is where events wait until they are in the store: one file for each, without anything that the rules remove. A hook
// writes its event there before all else, so that a store that is locked, full, read-only or of another version neither
// blocks the caller nor loses the event. The names of the files grow, and events are taken in by the order of the names.
type Spool struct {
	// folders are where an event may lie. An event goes to the first that takes it.
	folders []folder
}

// folder is one place for events. Others may write beside a shared one, so it must be ours alone.
type folder struct {
	path   string
	shared bool
}

// aside is the folder, within that of the events, for events that no further try brings into the store.
const aside = "aside"

// SpoolOf is the spool of a store: beside its file, or else in the caches of the user, or else in the folder for temporary
// files.
func SpoolOf(db string) Spool {
	folders := []folder{{path: db + ".spool"}}
	name := "conversations-spool-" + nameOf(db)
	if caches, err := os.UserCacheDir(); err == nil {
		folders = append(folders, folder{filepath.Join(caches, name), true})
	}
	return Spool{append(folders, folder{filepath.Join(os.TempDir(), name), true})}
}

// nameOf names a store among all of the user, whatever the path is by which it is called.
func nameOf(db string) string {
	path, err := filepath.Abs(db)
	if err != nil {
		path = db
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	sum := sha256.Sum256([]byte(path))
	return strconv.Itoa(os.Getuid()) + "-" + hex.EncodeToString(sum[:8])
}

// sanitized is an event without what must not be stored, as its file has it.
type sanitized struct {
	ID           string            `json:"id"`
	Conversation string            `json:"conversation_id"`
	Name         string            `json:"event"`
	Role         string            `json:"role"`
	Content      string            `json:"content"`
	Version      string            `json:"sanitization_version"`
	At           time.Time         `json:"at"`
	Removals     []records.Removal `json:"removals"`
}

// check says whether an event can be one that a hook wrote: a file may be torn.
func (s sanitized) check() error {
	e := Event{Conversation: s.Conversation, ID: s.ID, Name: s.Name, Role: s.Role, Content: s.Content}
	return e.check()
}

// add writes an event where it survives a crash and a power cut, and reports in which file.
func (s Spool) add(e sanitized) (path string, err error) {
	text, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	name := s.next(e.ID)
	var failed []error
	for _, f := range s.folders {
		err := f.add(name, text)
		if err == nil {
			return filepath.Join(f.path, name), nil
		}
		failed = append(failed, err)
	}
	return "", errors.Join(failed...)
}

// next names the file of an event, after all that wait: a clock that was set back must not change their order. It does not
// sort them: many may wait, and a caller does too.
func (s Spool) next(id string) string {
	at := time.Now().UnixNano()
	for _, f := range s.folders {
		names, _ := f.names() // what cannot be read is told when it is to be taken in
		for _, name := range names {
			digits, _, _ := strings.Cut(name, "-")
			if taken, err := strconv.ParseInt(digits, 10, 64); err == nil && isEvent(name) {
				at = max(at, taken+1)
			}
		}
	}
	return fmt.Sprintf("%020d-%s.json", at, id)
}

// isEvent tells the files of events from drafts and from what else is in their folder.
func isEvent(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".")
}

// add writes a file that is there as a whole or not at all.
func (f folder) add(name string, text []byte) error {
	if err := f.open(); err != nil {
		return err
	}
	draft := filepath.Join(f.path, "."+name)
	if err := write(draft, text); err != nil {
		return errors.Join(err, forget(draft))
	}
	if err := os.Rename(draft, filepath.Join(f.path, name)); err != nil {
		return errors.Join(err, forget(draft))
	}
	return syncFolder(f.path)
}

func write(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// forget removes a file that may not be there.
func forget(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// open makes the folder where it is missing.
func (f folder) open() error {
	err := os.Mkdir(f.path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(f.path, 0o700)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.check()
}

// check refuses a folder that somebody else has made, or may write to, where others may make folders.
func (f folder) check() error {
	if !f.shared {
		return nil
	}
	info, err := os.Lstat(f.path)
	if err != nil {
		return err
	}
	if !info.IsDir() || !private(info) {
		return fmt.Errorf("%s is not a folder of this user alone", f.path)
	}
	return nil
}

// waiting lists the files of the events that wait, in their order. With an error it lists those that it can see.
func (s Spool) waiting() ([]string, error) {
	var files []string
	var failed []error
	for _, f := range s.folders {
		names, err := f.names()
		if there := !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR); err != nil && there && !f.shared {
			failed = append(failed, fmt.Errorf("look for events that wait: %w", err))
		}
		for _, name := range names {
			if isEvent(name) {
				files = append(files, filepath.Join(f.path, name))
			}
		}
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(filepath.Base(a), filepath.Base(b)) })
	return files, errors.Join(failed...)
}

func (f folder) names() ([]string, error) {
	opened, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	if err := f.check(); err != nil {
		return nil, err
	}
	return opened.Readdirnames(-1)
}

// Waiting counts the events that are in the spool and not in the store.
func (s Spool) Waiting() (int, error) {
	files, err := s.waiting()
	return len(files), err
}

// Aside counts the events that were set aside: they are torn, or the store refuses them whenever they come.
func (s Spool) Aside() (n int) {
	for _, f := range s.folders {
		names, _ := folder{filepath.Join(f.path, aside), f.shared}.names() // there is none as a rule
		n += len(names)
	}
	return n
}

// read reads the event of a file. A file that somebody else has taken in is no error.
func read(file string) (e sanitized, there bool, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, true, fmt.Errorf("%w: %s", ErrMalformed, reason(text, err))
	}
	if e.At.IsZero() || !stages.IsVersion(e.Version) {
		return e, true, fmt.Errorf("%w: the file lacks its instant or the version of the rules", ErrMalformed)
	}
	return e, true, e.check()
}

// setAside keeps an event that cannot be taken in away from those that can.
func setAside(file string) error {
	to := filepath.Join(filepath.Dir(file), aside)
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	err := os.Rename(file, filepath.Join(to, filepath.Base(file)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
