package sim

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed scenarios/*.yaml
var scenarios embed.FS

// Shipped lists the names of the scenarios that come with the program.
func Shipped() []string {
	files, _ := fs.Glob(scenarios, "scenarios/*.yaml") // the pattern is valid
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(file, "scenarios/"), ".yaml")
	}
	slices.Sort(names)
	return names
}

// Text returns a shipped scenario as YAML. False: no scenario has this name.
func Text(name string) ([]byte, bool) {
	text, err := scenarios.ReadFile("scenarios/" + name + ".yaml")
	return text, err == nil
}
