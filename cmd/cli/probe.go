package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice/store/remote"
)

// maxReport is the most bytes read of a server's answer.
const maxReport = 1 << 20

func (a *app) probeCommand() *cobra.Command {
	var url string
	command := &cobra.Command{
		Use:   "probe [live|ready]",
		Short: "Ask a server whether it is ready, or alive",
		Long: `Asks a "sluice serve" and prints its answer. Exit code 7 if it is not ready, 5 if it does not
answer. For health checks of containers without other tools.`,
		Example: "  sluice probe\n  sluice probe live --url http://127.0.0.1:7400",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			what := "ready"
			if len(args) > 0 {
				what = args[0]
			}
			paths := map[string]string{"live": "/healthz", "ready": "/readyz"}
			if paths[what] == "" {
				return usagef("%q is neither live nor ready", what)
			}
			return a.probe(command.Context(), url, paths[what])
		},
	}
	command.Flags().StringVar(&url, "url", "http://"+defaultListen, "address of the server")
	return command
}

func (a *app) probe(ctx context.Context, address, path string) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	client, url, err := remote.HTTPClient(address)
	if err != nil {
		return usagef("--url: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return usagef("--url: %w", err)
	}
	if a.output != "table" {
		request.Header.Set("Accept", "application/json")
	}
	response, err := client.Do(request)
	if certificate := remote.AsCertificateError(err); certificate != nil {
		return certificate
	}
	if err != nil {
		return codedError{fmt.Errorf("the server does not answer: %w", err), exitUnreachable, "check --url, and that `sluice serve` runs there"}
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(a.stdout, io.LimitReader(response.Body, maxReport)); err != nil {
		return err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusServiceUnavailable:
		return silentExit(exitCheckFailed)
	}
	return codedError{fmt.Errorf("%s answers %s", url, response.Status), exitFailed, "check --url: it names no `sluice serve`"}
}
