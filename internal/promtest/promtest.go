// Package promtest finds the tools of Prometheus for tests.
package promtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sluice-queue/sluice/internal/debian"
)

// Tool gives the path of a program of Debian's package prometheus, such as promtool. Where it is not installed the package is
// unpacked into the user's cache, once.
func Tool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "sluice", "prometheus")
	path := filepath.Join(folder, "usr", "bin", name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	if err := debian.Unpack("prometheus", folder); err != nil {
		return "", fmt.Errorf("there is no %s, and Debian's package prometheus cannot be had: %w", name, err)
	}
	return path, nil
}
