package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/cmd/cli"
)

func TestEnginesAreReadFromTheFlags(t *testing.T) {
	t.Setenv("SLUICE_TEMPORAL", "")
	for name, c := range map[string]struct {
		optional bool
		args     []string
		want     []string
	}{
		"none": {true, nil, nil},
		"none, and one is needed": {false, nil, []string{
			`temporal: {Address:127.0.0.1:7233 APIKey: APIKeyFile: TLS:false Cert: Key: CA: Name:} namespace "", 8 calls`,
		}},
		"a name alone, and one is needed": {false, []string{"--engine", "eu"}, []string{
			`eu: {Address:127.0.0.1:7233 APIKey: APIKeyFile: TLS:false Cert: Key: CA: Name:} namespace "", 8 calls`,
		}},
		"--temporal and all beside it": {true, strings.Fields("--temporal h:1 --temporal-namespace n --temporal-tls --temporal-cert c --temporal-key k --temporal-ca a --temporal-server-name s --temporal-api-key-file f --temporal-calls 3"), []string{
			`temporal: {Address:h:1 APIKey: APIKeyFile:f TLS:true Cert:c Key:k CA:a Name:s} namespace "n", 3 calls`,
		}},
		"a URL": {true, []string{"--engine", "eu=temporal://h:7233"}, []string{
			`eu: {Address:h:7233 APIKey: APIKeyFile: TLS:false Cert: Key: CA: Name:} namespace "", 8 calls`,
		}},
		"a URL and all parameters": {true, []string{"--engine", "eu=temporal://[::1]:7233/bill%20ing/?tls=true&cert=c&key=k&ca=%2Fa%20b&server-name=s&api-key-file=f&calls=3"}, []string{
			`eu: {Address:[::1]:7233 APIKey: APIKeyFile:f TLS:true Cert:c Key:k CA:/a b Name:s} namespace "bill ing", 3 calls`,
		}},
		"several, one by its name alone": {false, strings.Fields("--engine eu=temporal://eu:1/a?calls=1 --engine here --engine us=temporal://us:2/b --temporal h:3 --temporal-namespace c"), []string{
			`eu: {Address:eu:1 APIKey: APIKeyFile: TLS:false Cert: Key: CA: Name:} namespace "a", 1 calls`,
			`us: {Address:us:2 APIKey: APIKeyFile: TLS:false Cert: Key: CA: Name:} namespace "b", 8 calls`,
			`here: {Address:h:3 APIKey: APIKeyFile: TLS:false Cert: Key: CA: Name:} namespace "c", 8 calls`,
		}},
		"several, and none is at the address that is the default": {false, strings.Fields("--engine eu=temporal://eu:1 --engine us=temporal://us:2"), []string{
			`eu: {Address:eu:1 APIKey: APIKeyFile: TLS:false Cert: Key: CA: Name:} namespace "", 8 calls`,
			`us: {Address:us:2 APIKey: APIKeyFile: TLS:false Cert: Key: CA: Name:} namespace "", 8 calls`,
		}},
	} {
		got, err := cli.Engines(c.optional, c.args...)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestEngineOfTheEnvironmentStandsBesideOthers(t *testing.T) {
	t.Setenv("SLUICE_TEMPORAL", "h:1")
	got, err := cli.Engines(true, "--engine", "eu=temporal://eu:1")
	if err != nil || len(got) != 2 || !strings.HasPrefix(got[1], "temporal: {Address:h:1 ") {
		t.Errorf("the engines are %q, %v", got, err)
	}
	if _, err := cli.Engines(true, "--engine", "temporal=temporal://eu:1"); err == nil || !strings.Contains(err.Error(), "--temporal or $SLUICE_TEMPORAL gives one of this name") {
		t.Errorf("a second one of its name: %v", err)
	}
}

// TestWrongEnginesAreRefused: each error says how to write the flag, and none repeats a part that may be a secret.
func TestWrongEnginesAreRefused(t *testing.T) {
	t.Setenv("SLUICE_TEMPORAL", "")
	const form = "the address must be temporal://HOST:PORT/NAMESPACE"
	for args, want := range map[string]string{
		"--engine temporal://h:1/n":                             "an engine needs a name; write --engine NAME=temporal://HOST:PORT/NAMESPACE",
		"--engine temporal://u:s3cret@h:1/n?tls=true":           "an engine needs a name",
		"--engine =temporal://h:1/n":                            "an engine needs a name",
		"--engine u:s3cret@h:1":                                 "the name of an engine must be 1 to 64 letters",
		"--engine a/b=temporal://h:1/n":                         "the name of an engine must be 1 to 64 letters",
		"--engine eu=h:1":                                       form,
		"--engine eu=":                                          form,
		"--engine eu=https://s3cret@h:1/n":                      form,
		"--engine eu=temporal://:1/n":                           form,
		"--engine eu=temporal://h:1/n#s3cret":                   form,
		"--engine eu=temporal://h:s3cret/n":                     form,
		"--engine eu=temporal://h/n":                            "the address must have a port",
		"--engine eu=temporal://h:0/n":                          "the address must have a port",
		"--engine eu=temporal://h:70000/n":                      "the address must have a port",
		"--engine eu=temporal://h:1/n/m":                        "one namespace, without a slash",
		"--engine eu=temporal://h:1/n%2Fm":                      "one namespace, without a slash",
		"--engine eu=temporal://u:s3cret@h:1/n":                 "must not hold a user or a password; put the API key into a file, and name it by api-key-file",
		"--engine eu=temporal://h:1/n?api-key=s3cret":           `the parameter "api-key" must be one of tls, cert, key, ca, server-name, api-key-file, calls`,
		"--engine eu=temporal://h:1/n?calls=s3cret":             "calls must be a whole number from 1",
		"--engine eu=temporal://h:1/n?calls=0":                  "calls must be a whole number from 1",
		"--engine eu=temporal://h:1/n?tls=s3cret":               "tls must be true or false",
		"--engine eu=temporal://h:1/n?tls":                      "tls must be true or false",
		"--engine eu=temporal://h:1/n?ca=":                      "ca is empty",
		"--engine eu=temporal://h:1/n?api-key-file=":            "api-key-file is empty",
		"--engine eu=temporal://h:1/n?ca=a&ca=b":                "ca is given twice",
		"--engine eu=temporal://h:1/n?ca=%zz":                   "the parameters of the address cannot be read",
		"--engine eu=temporal://h:1/n?tls=false&api-key-file=f": "tls=false cannot stand beside certificates or an API key",
		"--engine eu=temporal://h:1/n?cert=c":                   `engine "eu": a certificate and its key are given together`,
		"--temporal h:1 --temporal-key k":                       `engine "temporal": a certificate and its key are given together`,
		"--engine eu=temporal://h:1 --engine eu=temporal://h:2": "--engine eu is given twice",
		"--engine eu=temporal://h:1 --engine eu":                "--engine eu is given twice",
		"--engine eu --engine eu":                               "--engine eu is given twice",
		"--engine eu --engine us --temporal h:1":                "--engine eu and --engine us have no address",
		"--engine eu":                                           "--engine eu has no address; write --engine eu=temporal://HOST:PORT/NAMESPACE, or add --temporal HOST:PORT",
		"--engine eu=temporal://h:1 --engine us":                "--engine us has no address",
		"--temporal h:1 --engine temporal=temporal://h:2":       "--engine temporal is given twice",
		"--engine eu=temporal://h:1 --temporal-ca f":            "--temporal-ca is for the engine of --temporal, which is not given",
		"--temporal-tls":                                        "--temporal-tls is for the engine of --temporal, which is not given",
		"--temporal h:1 --temporal-api-key-file=":               "--temporal-api-key-file is empty",
		"--temporal h:1 --temporal-calls 0":                     "--temporal-calls 0 must be at least 1",
	} {
		got, err := cli.Engines(true, strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %q, %v, want the error %q without a secret", args, got, err, want)
		}
	}
}

func TestAPIKeyIsOneLineOfItsFile(t *testing.T) {
	t.Setenv("SLUICE_TEMPORAL", "")
	for text, right := range map[string]bool{
		"s3cret": true, "s3cret\n": true, "": false, "\n": false, "s3cret\ns3cret2": false, "s3cret s3cret2": false, "s3cret\x00": false, "s3crèt": false,
	} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := cli.OpenEngines("--engine", "eu=temporal://127.0.0.1:1/n?api-key-file="+file)
		if (err == nil) != right || err != nil && (!strings.Contains(err.Error(), `engine "eu": invalid input: read the API key for Temporal: the file `+file) || strings.Contains(err.Error(), "s3cr")) {
			t.Errorf("an API key of %q: got the error %v, want it right: %t", text, err, right)
		}
	}
	if err := cli.OpenEngines("--engine", "eu=temporal://127.0.0.1:1/n?api-key-file=/absent"); err == nil || !strings.Contains(err.Error(), `read the API key for Temporal: open /absent`) {
		t.Errorf("a file that is not there: %v", err)
	}
}
