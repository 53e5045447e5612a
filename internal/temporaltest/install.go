package temporaltest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/internal/testcache"
)

// keep is how long an unused server stays in the cache.
const keep = 14 * 24 * time.Hour

// Install returns the path of the server's program, and builds it if it is missing. A build takes
// about 4 minutes on 2 cores, and reports to standard error. The program stays in
// [testcache.Folder], by platform and by its sources. Many processes may install
// at once: one builds, the others wait. The end of ctx ends the build.
func Install(ctx context.Context) (string, error) {
	source, err := sourceFolder(ctx)
	if err != nil {
		return "", fmt.Errorf("find the source of the Temporal server: %w", err)
	}
	program, err := programPath(source)
	if err != nil {
		return "", err
	}
	if isThere(program) {
		return program, nil
	}
	unlock, err := testcache.Lock(filepath.Base(program), "builds the Temporal server")
	if err != nil {
		return "", err
	}
	defer unlock()
	if isThere(program) {
		return program, nil // another process built it
	}
	if err := build(ctx, source, program); err != nil {
		return "", fmt.Errorf("build the Temporal server in %s: %w\nName a server that runs already in %s to do without, for example one of `temporal server start-dev`, after `go install github.com/temporalio/cli/cmd/temporal@v1.5.1`", source, err, Env)
	}
	removeUnused(filepath.Dir(program))
	return program, nil
}

// sourceFolder asks Go for this module's folder: callers run in any folder of it, or in a
// neighbouring module.
func sourceFolder(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sluice-queue/sluice")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("go list: %w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(strings.TrimSpace(string(out)), "tools", "temporal"), nil
}

// programPath names the program by everything that it is built from.
func programPath(source string) (string, error) {
	var files []string
	for _, pattern := range []string{"go.mod", "go.sum", "*.go"} {
		found, err := filepath.Glob(filepath.Join(source, pattern))
		if err != nil {
			return "", err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return "", fmt.Errorf("there is no source of the Temporal server in %s; use a clone of the repository", source)
	}
	var all bytes.Buffer
	fmt.Fprintln(&all, runtime.Version())
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&all, filepath.Base(file), len(text))
		all.Write(text)
	}
	folder, err := testcache.Folder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(all.Bytes())
	name := fmt.Sprintf("temporal-%s-%s-%x", runtime.GOOS, runtime.GOARCH, sum[:8])
	return filepath.Join(folder, name), nil
}

// isThere reports whether a program is built, and records its use.
func isThere(program string) bool {
	now := time.Now()
	return os.Chtimes(program, now, now) == nil
}

// build builds beside the program and then renames the result, so that no process starts an
// incomplete one.
func build(ctx context.Context, source, program string) error {
	fmt.Fprintf(os.Stderr, "building a Temporal server into %s; the first time this takes about four minutes on two cores\n", program)
	half := program + ".half"
	// Without C, so that a compiler that is installed later changes nothing. With low priority,
	// because other work may run beside it.
	command := []string{"go", "build", "-v", "-mod=readonly", "-buildvcs=false", "-ldflags=-s -w", "-o", half, "."}
	if nice, err := exec.LookPath("nice"); err == nil {
		command = append([]string{nice}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.WaitDelay = 5 * time.Second // for compilers that outlive a cancelled build
	far := &progress{begun: time.Now()}
	cmd.Stdout, cmd.Stderr = far, far
	telling, told := context.WithCancel(ctx)
	defer told()
	go far.tell(telling, os.Stderr)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, far.other())
	}
	fmt.Fprintln(os.Stderr, "built a Temporal server:", far)
	return os.Rename(half, program)
}

// removeUnused removes old servers: each takes 150 MB.
func removeUnused(folder string) {
	programs, _ := filepath.Glob(filepath.Join(folder, "temporal-*"))
	for _, program := range programs {
		info, err := os.Stat(program)
		if errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(program, ".lock") {
			continue
		}
		if err == nil && time.Since(info.ModTime()) > keep {
			_ = os.Remove(program)
		}
	}
}
