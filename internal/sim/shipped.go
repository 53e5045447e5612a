package sim

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed scenarios/*.yaml
var scenarios embed.FS

// Shipped names the scenarios that come with the program, by name.
func Shipped() []string {
	files, _ := fs.Glob(scenarios, "scenarios/*.yaml") // the pattern is right
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(file, "scenarios/"), ".yaml")
	}
	slices.Sort(names)
	return names
}

// Text gives a scenario that comes with the program, as YAML; false: there is none of that name.
func Text(name string) ([]byte, bool) {
	text, err := scenarios.ReadFile("scenarios/" + name + ".yaml")
	return text, err == nil
}
