package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
)

// given is a setting of the command line, and where its value came from.
type given struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Origin is flag, environment, profile NAME, or default.
	Origin string `json:"origin,omitempty"`
}

// profileSettings are the settings that a profile can have. Each is a flag, and a variable with the prefix SLUICE_.
var profileSettings = []string{"db", "token", "output", "by", "timeout"}

// variableOf names the variable of a setting.
func variableOf(setting string) string { return "SLUICE_" + strings.ToUpper(setting) }

// settleProfile gives each setting its value: of its flag, else of its variable, else of the profile, else its default.
func (a *app) settleProfile(command *cobra.Command) error {
	flags := command.Flags()
	read, err := readConfig()
	if err != nil {
		return err
	}
	origin := "flag"
	if !flags.Changed("profile") {
		if a.profile, origin = os.Getenv("SLUICE_PROFILE"), "environment"; a.profile == "" {
			if a.profile, origin = read.profile, "file"; a.profile == "" {
				origin = "default"
			}
		}
	}
	profile, is := read.profiles[a.profile]
	if a.profile != "" && !is {
		return codedError{usagef("--profile %.40q: %s has no such profile", a.profile, configPath()), exitUsage, "write [" + a.profile + "] into the file, and below it db = \"https://HOST\""}
	}
	a.given = []given{{"profile", a.profile, origin}}
	for _, name := range profileSettings {
		flag := flags.Lookup(name)
		origin, value := "default", ""
		fromProfile, has := profile[name]
		switch variable := strings.TrimSpace(os.Getenv(variableOf(name))); { // a value from a file may end with a newline
		case flag.Changed:
			origin = "flag"
		case variable != "":
			origin, value = "environment", variable
		case has:
			origin, value = "profile "+a.profile, fromProfile
		}
		if value != "" {
			if err := flag.Value.Set(value); err != nil {
				return usagef("%s (%s): %w", name, origin, err)
			}
		}
		a.given = append(a.given, given{name, flag.Value.String(), origin})
	}
	return nil
}

// config is the file of profiles.
type config struct {
	profile  string // the one that counts if none is named
	profiles map[string]map[string]string
}

// configPath is the path of the file of profiles. Empty: there is no home.
func configPath() string {
	if path := os.Getenv("SLUICE_CONFIG"); path != "" {
		return path
	}
	folder := os.Getenv("XDG_CONFIG_HOME")
	if folder == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(home, ".config")
	}
	return filepath.Join(folder, "sluice", "config.toml")
}

// readConfig reads the file of profiles. A file that is not there has none.
func readConfig() (config, error) {
	path := configPath()
	if path == "" {
		return config{}, nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // the person's own file
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("SLUICE_CONFIG") == "" {
		return config{}, nil
	}
	if err != nil {
		return config{}, usagef("read the profiles: %w", err)
	}
	out, err := parseConfig(string(text))
	if err != nil {
		return config{}, codedError{usagef("%s: %w", path, err), exitUsage, "write profiles as [NAME], and below settings as db = \"https://HOST\""}
	}
	return out, nil
}

// parseConfig reads profiles: tables of TOML with texts in double quotes.
func parseConfig(text string) (config, error) {
	out := config{profiles: make(map[string]map[string]string)}
	var profile map[string]string
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		wrong := func(rule string) error { return fmt.Errorf("line %d: %s%s", number, shownName(line), rule) }
		if strings.HasPrefix(line, "[") {
			name := strings.TrimSuffix(strings.TrimPrefix(line, "["), "]")
			if !strings.HasSuffix(line, "]") || name == "" || strings.ContainsAny(name, " \t[].\"'") {
				return out, wrong("must be [NAME]")
			}
			if out.profiles[name] != nil {
				return out, wrong("[" + name + "] is there twice")
			}
			profile = make(map[string]string)
			out.profiles[name] = profile
			continue
		}
		name, value, err := readSetting(line)
		switch {
		case err != nil:
			return out, wrong(err.Error())
		case profile == nil && name == "profile" && out.profile == "":
			out.profile = value
		case profile == nil:
			return out, wrong("must come after a [NAME]; before, only profile = \"NAME\" may stand")
		case !slices.Contains(profileSettings, name):
			return out, wrong("must be one of " + strings.Join(profileSettings, ", "))
		case profile[name] != "":
			return out, wrong("is there twice")
		default:
			profile[name] = value
		}
	}
	return out, nil
}

// shownName returns the name of the setting in a line, for an error. The rest of the line may be a token.
func shownName(line string) string {
	name, _, found := strings.Cut(line, "=")
	if name = strings.TrimSpace(name); !found || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < 'a' || r > 'z' }) || len(name) > maxSetting {
		return ""
	}
	return name + " "
}

// maxSetting is the longest name of a setting that an error shows; a token is longer.
const maxSetting = 20

// readSetting reads a line such as db = "https://HOST" # remark.
func readSetting(line string) (name, value string, err error) {
	name, rest, found := strings.Cut(line, "=")
	rest = strings.TrimSpace(rest)
	quoted, prefixErr := strconv.QuotedPrefix(rest)
	if !found || prefixErr != nil || !strings.HasPrefix(quoted, `"`) {
		return "", "", errors.New(`must be NAME = "VALUE"`)
	}
	if after := strings.TrimSpace(rest[len(quoted):]); after != "" && !strings.HasPrefix(after, "#") {
		return "", "", errors.New("must end after the value")
	}
	value, err = strconv.Unquote(quoted)
	if err != nil || value == "" {
		return "", "", errors.New("must have a value in double quotes")
	}
	return strings.TrimSpace(name), value, nil
}

func (a *app) configCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:     "config",
		Short:   "Show the settings of this command line",
		Example: "  sluice config show --origin",
		Long: `Profiles name stores and servers. The file ~/.config/sluice/config.toml (or SLUICE_CONFIG) has them:

  profile = "prod"                     # counts if no other is named

  [prod]
  db = "https://jobs.example.com"
  token = "@~/.config/sluice/prod"     # the file with the token

A profile can have db, token, output, by and timeout. A flag comes before a variable (SLUICE_DB), a
variable before the profile.`,
	})
	show := &cobra.Command{
		Use:     "show",
		Short:   "Show the settings that count",
		Example: "  sluice config show --origin\n  sluice config show -o json",
		Args:    arguments(0, 0),
	}
	origin := show.Flags().Bool("origin", false, "say where each value came from")
	show.RunE = func(*cobra.Command, []string) error {
		rows := slices.Clone(a.given)
		for i := range rows {
			rows[i].Value = a.shownSetting(rows[i])
			if !*origin {
				rows[i].Origin = ""
			}
		}
		columns := []column[given]{
			{"SETTING", func(g given) string { return g.Name }, false},
			{"VALUE", func(g given) string { return g.Value }, false},
		}
		if *origin {
			columns = append(columns, column[given]{"ORIGIN", func(g given) string { return g.Origin }, false})
		}
		return printList(a, rows, func(g given) string { return g.Name }, columns)
	}
	command.AddCommand(show)
	return command
}

// shownSetting returns a value without secrets.
func (a *app) shownSetting(g given) string {
	switch {
	case g.Name == "by":
		return a.by
	case g.Name == "db":
		return redactURL(g.Value)
	case g.Name == "token" && g.Value != "" && !strings.HasPrefix(g.Value, "@"):
		return "(hidden)"
	case g.Name == "timeout":
		if d, err := time.ParseDuration(g.Value); err == nil {
			return sluice.FormatDuration(d)
		}
	}
	return g.Value
}
