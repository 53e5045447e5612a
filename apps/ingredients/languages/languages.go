// Package languages holds the matchers in Python and Node, and gets what they need: psycopg from Debian, and pg by npm,
// kept in the user's cache folder. They are programs of their own, and could as well run far from here.
package languages

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sluice-queue/sluice/internal/debian"
	"github.com/sluice-queue/sluice/internal/testcache"
)

//go:embed matcher.py matcher.js package.json package-lock.json .npmrc
var files embed.FS

// Program says how to start a matcher.
type Program struct {
	// Command is its beginning, to which flags can be added.
	Command []string
	// Env is what it needs in its environment.
	Env []string
}

// Find gets the matcher in a language, python or node, into a folder, and what it needs where that is missing. It takes
// some seconds the first time.
func Find(ctx context.Context, language, folder string) (p Program, err error) {
	var program, file string
	switch language {
	case "python":
		file = "matcher.py"
		program, err = findPython(ctx)
	case "node":
		var modules string
		file = "matcher.js"
		program, modules, err = findNode(ctx)
		p.Env = []string{"NODE_PATH=" + modules}
	default:
		err = fmt.Errorf("there is no matcher in %q; there are python and node", language)
	}
	if err != nil {
		return p, err
	}
	text, err := files.ReadFile(file)
	if err != nil {
		return p, err
	}
	p.Command = []string{program, filepath.Join(folder, file)}
	return p, os.WriteFile(p.Command[1], text, 0o600)
}

// findPython looks for one that has psycopg: the first on the path may be one of the user's own, without it.
func findPython(ctx context.Context) (string, error) {
	look := func() (string, bool) {
		for _, python := range []string{"python3", "/usr/bin/python3"} {
			if exec.CommandContext(ctx, python, "-c", "import psycopg").Run() == nil {
				return python, true
			}
		}
		return "", false
	}
	if python, ok := look(); ok {
		return python, nil
	}
	if err := debian.Install("python3", "python3-psycopg"); err != nil {
		return "", fmt.Errorf("there is no python3 with psycopg 3, which the matcher in Python needs: %w", err)
	}
	if python, ok := look(); ok {
		return python, nil
	}
	return "", errors.New("python3-psycopg was installed, and yet no python3 finds psycopg")
}

// findNode finds Node, and the folder of its modules. That is in the cache, one for each state of the lock file.
func findNode(ctx context.Context) (node, modules string, err error) {
	if err := debian.InstallNode(); err != nil {
		return "", "", fmt.Errorf("there is no Node with npm, which its matcher needs: %w", err)
	}
	if node, err = exec.LookPath("node"); err != nil {
		return "", "", err
	}
	cache, err := testcache.Folder()
	if err != nil {
		return "", "", err
	}
	lock, err := files.ReadFile("package-lock.json")
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256(lock)
	folder := filepath.Join(cache, fmt.Sprintf("ingredients-node-%x", sum[:8]))
	modules = filepath.Join(folder, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return node, modules, nil
	}
	return node, modules, installModules(ctx, folder)
}

// installModules makes the folder beside its place, and moves it there when it is whole.
func installModules(ctx context.Context, folder string) error {
	making, err := os.MkdirTemp(filepath.Dir(folder), "making-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(making) }()
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(making, name), text, 0o600); err != nil {
			return err
		}
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = making
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci, for the matcher in Node: %w\n%s", err, out)
	}
	if err := os.Rename(making, folder); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
