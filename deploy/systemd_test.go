package deploy_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/debian"
)

// unit is the text of the service.
type unit string

func readUnit(t *testing.T) unit {
	t.Helper()
	text, err := os.ReadFile("systemd/sluice.service")
	if err != nil {
		t.Fatal(err)
	}
	return unit(text)
}

// is returns the value of a directive, which the unit must have once.
func (u unit) is(t *testing.T, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(string(u), -1)
	if len(found) != 1 {
		t.Fatalf("the unit says %s %d times", name, len(found))
	}
	return found[0][1]
}

// command returns the command line that the unit starts.
func (u unit) command(t *testing.T) []string {
	t.Helper()
	return strings.Fields(u.is(t, "ExecStart"))
}

// environment returns the environment of the service: the example file with the address of a store, and the credential.
func (u unit) environment(t *testing.T, store *url.URL) []string {
	t.Helper()
	text, err := os.ReadFile("systemd/sluice.env.example")
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := store.User.Password()
	folder, err := os.MkdirTemp("", "sluice-credentials-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	name, _, _ := strings.Cut(strings.TrimPrefix(u.is(t, "LoadCredential"), "pgpass:"), " ")
	if name != "/etc/sluice/pgpass" {
		t.Errorf("the password comes from %s", name)
	}
	line := strings.Join([]string{store.Hostname(), store.Port(), strings.TrimPrefix(store.Path, "/"), store.User.Username(), secret}, ":")
	if err := os.WriteFile(filepath.Join(folder, "pgpass"), []byte("# as pgpass.example\n"+line+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{strings.ReplaceAll(u.is(t, "Environment"), "%d", folder)}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if at, named := strings.CutPrefix(line, "SLUICE_DB="); named {
			parsed, err := url.Parse(strings.Trim(at, `"`))
			if err != nil {
				t.Fatal(err)
			}
			if _, has := parsed.User.Password(); has || parsed.User.Username() != store.User.Username() || parsed.Path != store.Path {
				t.Errorf("the example is %s, and the documents make %s", at, store.Redacted())
			}
			parsed.Host, parsed.RawQuery = store.Host, store.RawQuery
			line = "SLUICE_DB=" + parsed.String()
		}
		env = append(env, line)
	}
	return env
}

// TestUnitIsWhatSystemdTakes has systemd verify the unit, with the path of the built program, and rate its exposure.
func TestUnitIsWhatSystemdTakes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if err := debian.Install("systemd"); err != nil {
			t.Fatalf("systemd-analyze is needed, of the Debian package systemd: %v", err)
		}
	}
	text, program := string(readUnit(t)), filepath.Join(theImage(t).root, "sluice")
	here := filepath.Join(t.TempDir(), "sluice.service")
	if err := os.WriteFile(here, []byte(strings.Replace(text, "ExecStart=/usr/local/bin/sluice ", "ExecStart="+program+" ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--man=no", "--generators=no", here}, {"security", "--offline=yes", "--threshold=15", "--no-pager", here}} {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %v: %v\n%s", args, err, out)
		}
	}
}
