package cli

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine/temporal"
)

// engineScheme is the scheme of a Temporal server's URL.
const engineScheme = "temporal"

// engineParameters are the parameters of that URL.
const engineParameters = "tls, cert, key, ca, server-name, api-key-file, calls"

// engineForm shows how to write --engine.
func engineForm(name string) string {
	return fmt.Sprintf("--engine %s=%s://HOST:PORT/NAMESPACE", name, engineScheme)
}

// parseEngine reads the value of --engine: NAME=URL, or a NAME alone, which gets no address. Errors never repeat the
// URL or a value, which may contain a secret. Secrets belong in files that the URL names.
func parseEngine(text string) (engineAt, error) {
	name, address, given := strings.Cut(text, "=")
	if strings.Contains(name, "://") || name == "" {
		return engineAt{}, usagef("--engine: an engine needs a name; write %s", engineForm("NAME"))
	}
	if sluice.CheckQueueName(name) != nil {
		return engineAt{}, usagef("--engine: the name of an engine must be 1 to 64 letters, digits and . _ : -, the first a letter or a digit")
	}
	if !given {
		return engineAt{name: name}, nil
	}
	at, err := parseEngineURL(address)
	if err != nil {
		return engineAt{}, usagef("--engine %s: %w", name, err)
	}
	at.name = name
	return at, at.check()
}

func parseEngineURL(text string) (engineAt, error) {
	at := engineAt{parallel: temporal.DefaultParallel}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != engineScheme || u.Hostname() == "" || strings.Contains(text, "#") {
		return at, fmt.Errorf("the address must be %s://HOST:PORT/NAMESPACE", engineScheme)
	}
	if u.User != nil {
		return at, errors.New("the address must not hold a user or a password; put the API key into a file, and name it by api-key-file")
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return at, fmt.Errorf("the address must have a port, as %s://HOST:PORT/NAMESPACE", engineScheme)
	}
	at.server.Address, at.namespace = u.Host, strings.Trim(u.Path, "/")
	if strings.Contains(at.namespace, "/") {
		return at, errors.New("the address must have one namespace, without a slash")
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return at, errors.New("the parameters of the address cannot be read")
	}
	return at, at.setAll(parameters)
}

func (at *engineAt) setAll(parameters url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		values := parameters[name]
		if len(values) > 1 {
			return fmt.Errorf("%s is given twice", name)
		}
		if err := at.set(name, values[0]); err != nil {
			return err
		}
	}
	if parameters.Has("tls") && !at.server.TLS && at.encrypts() {
		return errors.New("tls=false cannot stand beside certificates or an API key, which need encryption")
	}
	return nil
}

func (at *engineAt) set(parameter, value string) (err error) {
	texts := map[string]*string{
		"cert": &at.server.Cert, "key": &at.server.Key, "ca": &at.server.CA, "server-name": &at.server.Name, "api-key-file": &at.server.APIKeyFile,
	}
	text := texts[parameter]
	switch {
	case text != nil && value == "":
		return fmt.Errorf("%s is empty", parameter)
	case text != nil:
		*text = value
	case parameter == "tls":
		if at.server.TLS, err = strconv.ParseBool(value); err != nil {
			return errors.New("tls must be true or false")
		}
	case parameter == "calls":
		if at.parallel, err = strconv.Atoi(value); err != nil || at.parallel < 1 {
			return errors.New("calls must be a whole number from 1")
		}
	default:
		return fmt.Errorf("the parameter %q must be one of %s", parameter, engineParameters)
	}
	return nil
}

// encrypts reports whether anything besides tls needs encryption.
func (at engineAt) encrypts() bool {
	return at.server.APIKeyFile != "" || at.server.Cert != "" || at.server.Key != "" || at.server.CA != "" || at.server.Name != ""
}

// check refuses impossible combinations, however they were given.
func (at engineAt) check() error {
	if (at.server.Cert == "") != (at.server.Key == "") {
		return usagef("engine %q: a certificate and its key are given together, or neither", at.name)
	}
	return nil
}
