package deploy_test

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/sluice-queue/sluice/internal/debian"
)

// repository is the folder in which the image is built.
const repository = ".."

// stages parses the stages of the Dockerfile.
func stages() ([]instructions.Stage, error) {
	file, err := os.Open("Dockerfile")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	tree, err := parser.Parse(file)
	if err != nil {
		return nil, err
	}
	if len(tree.Warnings) > 0 {
		return nil, fmt.Errorf("the Dockerfile has warnings: %v", tree.Warnings)
	}
	all, _, err := instructions.Parse(tree.AST, nil)
	return all, err
}

// command returns the last instruction of a kind in a stage.
func command[T instructions.Command](t *testing.T, stage instructions.Stage) (found T) {
	t.Helper()
	for _, c := range slices.Backward(stage.Commands) {
		if one, is := c.(T); is {
			return one
		}
	}
	t.Fatalf("the Dockerfile has no %T", found)
	return found
}

// image has the files of the image, and its settings.
type image struct {
	root       string
	entrypoint []string
	command    []string
	check      []string // the health check
	user       string
}

// built runs the Dockerfile once without Docker. It runs the commands of the first stage in the repository, and returns
// the folder that the second stage copies.
var built = sync.OnceValues(func() (string, error) {
	all, err := stages()
	if err != nil {
		return "", err
	}
	root, err := os.MkdirTemp("", "sluice-image-")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err != nil {
		if err := debian.Install("ca-certificates"); err != nil {
			return root, err
		}
	}
	env := os.Environ()
	for _, c := range all[0].Commands {
		switch c := c.(type) {
		case *instructions.EnvCommand:
			for _, pair := range c.Env {
				env = append(env, pair.String())
			}
		case *instructions.RunCommand:
			line := strings.Join(c.CmdLine, " ")
			if line == "go mod download" { // the modules are in the cache
				continue
			}
			cmd := exec.Command("sh", "-e", "-c", strings.ReplaceAll(line, "/image", root))
			cmd.Dir, cmd.Env = repository, env
			if out, err := cmd.CombinedOutput(); err != nil {
				return root, fmt.Errorf("%s: %w\n%s", line, err, out)
			}
		}
	}
	return root, openFolders(root)
})

// openFolders gives the folders the rights that COPY gives them.
func openFolders(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
}

// TestContextHasWhatIsBuilt checks that .dockerignore lets in all files that the program needs, and no private files.
func TestContextHasWhatIsBuilt(t *testing.T) {
	t.Parallel()
	file, err := os.Open(filepath.Join(repository, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{if .Module}}{{if .Module.Main}}{{$from := .Dir}}{{range .GoFiles}}{{$from}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$from}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, "./cmd/sluice")
	list.Dir = repository
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(out))
	for _, name := range []string{"go.work", "go.mod", "go.sum", "cmd/go.mod", "cmd/go.sum", "engine/temporal/go.mod", "engine/temporal/go.sum"} {
		files = append(files, filepath.Join(here, name))
	}
	if len(files) < 100 {
		t.Errorf("the program is made of %d files only", len(files))
	}
	for _, path := range files {
		name, err := filepath.Rel(here, path)
		if err != nil {
			t.Fatal(err)
		}
		if ignored, err := matcher.MatchesOrParentMatches(name); err != nil || ignored {
			t.Errorf("%s is not in the context: %v", name, err)
		}
	}
	for _, name := range []string{"jobs.db", "cmd/cli/jobs.db-wal", "sluice.env", "deploy/systemd/pgpass", ".env", "sluice-demo/demo.db", "apps/payments/main.go"} {
		if ignored, err := matcher.MatchesOrParentMatches(name); err != nil || !ignored {
			t.Errorf("%s would be in the context: %v", name, err)
		}
	}
}

// theImage returns the image that the Dockerfile makes.
func theImage(t *testing.T) image {
	t.Helper()
	root, err := built()
	if err != nil {
		t.Fatal(err)
	}
	all, err := stages()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1]
	check := command[*instructions.HealthCheckCommand](t, last).Health
	if check.Test[0] != "CMD" || command[*instructions.EntrypointCommand](t, last).PrependShell || command[*instructions.CmdCommand](t, last).PrependShell {
		t.Error("there is no shell in the image, and something in the Dockerfile wants one")
	}
	return image{
		root: root, entrypoint: command[*instructions.EntrypointCommand](t, last).CmdLine, command: command[*instructions.CmdCommand](t, last).CmdLine,
		check: check.Test[1:], user: command[*instructions.UserCommand](t, last).User,
	}
}

func TestImageHasTheProgramAndNothingElse(t *testing.T) {
	t.Parallel()
	all, err := stages()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1]
	if last.BaseName != "scratch" || len(all) != 2 {
		t.Errorf("the image is made of %s, in %d stages", last.BaseName, len(all))
	}
	for _, c := range last.Commands {
		if copied, is := c.(*instructions.CopyCommand); is && (copied.From != "build" || !slices.Equal(copied.SourcePaths, []string{"/image/"}) || copied.DestPath != "/") {
			t.Errorf("the image gets more than was built: %s", copied)
		}
	}
	shipped := theImage(t)
	if shipped.user != "65532:65532" || !slices.Equal(shipped.entrypoint, []string{"/sluice"}) {
		t.Errorf("the image starts %v as %s", shipped.entrypoint, shipped.user)
	}
	var files []string
	err = filepath.WalkDir(shipped.root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, strings.TrimPrefix(path, shipped.root))
		}
		return err
	})
	if want := []string{"/etc/passwd", "/etc/ssl/certs/ca-certificates.crt", "/sluice"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("the image has %v, want %v: %v", files, want, err)
	}
	program, err := elf.Open(filepath.Join(shipped.root, "sluice"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	libraries, err := program.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("the program needs libraries: %v, %v", libraries, err)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("the program needs a dynamic linker")
		}
	}
}
