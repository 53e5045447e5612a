package testcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tool returns the path of the program that the module tools/NAME builds. Go builds it without C, and keeps it in its
// cache. Flags are those of the build.
func Tool(ctx context.Context, name string, flags ...string) (string, error) {
	root, err := Output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sluice-queue/sluice"))
	if err != nil {
		return "", fmt.Errorf("find tools/%s: %w", name, err)
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "-n", name)
	cmd.Dir = filepath.Join(root, "tools", name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="+strings.Join(append(flags, "-buildvcs=false"), " "))
	program, err := Output(cmd)
	if err != nil {
		return "", fmt.Errorf("build %s in %s: %w", name, cmd.Dir, err)
	}
	return program, nil
}

// Output runs a program, and returns what it says without the blanks around it. The error has its complaints.
func Output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
