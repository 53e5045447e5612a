package sluice_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestUsersPayOnlyForWhatTheyImport(t *testing.T) {
	t.Parallel()
	unwanted := map[string][]string{
		"./":                {"go.opentelemetry.io/", "github.com/", "modernc.org/", "golang.org/", "go.yaml.in/", "temporal", "google.golang.org/"},
		"./scrub":           {"go.opentelemetry.io/", "github.com/", "modernc.org/", "golang.org/", "go.yaml.in/", "temporal", "google.golang.org/"},
		"./worker":          {"go.opentelemetry.io/", "github.com/jackc", "modernc.org/", "golang.org/", "go.yaml.in/", "temporal", "google.golang.org/"},
		"./engine/local":    {"go.opentelemetry.io/", "github.com/jackc", "modernc.org/", "golang.org/", "go.yaml.in/", "temporal", "google.golang.org/"},
		"./engine/temporal": {"go.opentelemetry.io/", "github.com/jackc", "modernc.org/", "github.com/spf13", "santhosh-tekuri", "go.yaml.in/yaml/v4"},
		"./alert":           {"github.com/jackc", "modernc.org/", "golang.org/", "go.yaml.in/", "temporal", "google.golang.org/"},
		"./upkeep":          {"go.opentelemetry.io/", "github.com/jackc", "modernc.org/", "golang.org/", "go.yaml.in/", "temporal", "google.golang.org/"},
		"./cmd/trace":       {"github.com/jackc", "github.com/spf13", "modernc.org/", "go.yaml.in/", "temporal", "google.golang.org/", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters"},
		"./api":             {"go.opentelemetry.io/", "github.com/", "modernc.org/", "golang.org/", "go.yaml.in/", "temporal", "google.golang.org/"},
		"./forward":         {"go.opentelemetry.io/", "github.com/jackc", "modernc.org/", "golang.org/", "go.yaml.in/", "temporal", "google.golang.org/"},
		"./store/memory":    {"go.opentelemetry.io/", "github.com/jackc", "modernc.org/", "go.yaml.in/", "temporal", "google.golang.org/"},
		"./store/sqlite":    {"go.opentelemetry.io/", "github.com/jackc", "github.com/spf13", "santhosh-tekuri", "temporal", "google.golang.org/", "go.yaml.in/"},
		"./store/postgres":  {"go.opentelemetry.io/", "modernc.org/", "github.com/spf13", "santhosh-tekuri", "temporal", "google.golang.org/", "go.yaml.in/"},
	}
	command := []string{"list", "-f", `{{.ImportPath}} {{join .Deps " "}}`}
	out, err := exec.Command("go", append(command, slices.Collect(maps.Keys(unwanted))...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(unwanted) {
		t.Fatalf("go list tells of %d packages, want %d", len(lines), len(unwanted))
	}
	for _, line := range lines {
		deps := strings.Fields(line)
		pkg := "./" + strings.TrimPrefix(strings.TrimPrefix(deps[0], module), "/")
		if len(unwanted[pkg]) == 0 {
			t.Errorf("nothing is unwanted in %s", pkg)
		}
		for _, dep := range deps[1:] {
			for _, bad := range unwanted[pkg] {
				if strings.Contains(dep, bad) && !strings.HasPrefix(dep, module) && !strings.HasPrefix(dep, "vendor/") { // the standard library's own
					t.Errorf("%s pulls in %s", pkg, dep)
				}
			}
		}
	}
}
