package devnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/sluice-queue/sluice/internal/testcache"
)

// IPFS is an IPFS node of our own: kubo, offline, with an empty repository.
type IPFS struct {
	// URL is that of its RPC interface.
	URL string

	cmd *exec.Cmd
	end io.Closer
}

// starting is how long the node may take until it answers. It needs a second.
const starting = time.Minute

// Install gives the path of the node's program. Go builds it from tools/ipfs and keeps it in its cache: about two minutes on
// two cores the first time, and 300 MB of modules.
func Install(ctx context.Context) (string, error) {
	return testcache.Tool(ctx, "ipfs", "-tags=nofuse") // without FUSE, as anybody can build it
}

// StartIPFS starts a node with its repository in a new folder. It listens on loopback alone, knows no other node, and ends
// with this process, however that ends.
func StartIPFS(ctx context.Context, folder string) (*IPFS, error) {
	program, err := Install(ctx)
	if err != nil {
		return nil, err
	}
	environment := append(os.Environ(), "IPFS_PATH="+folder, "IPFS_TELEMETRY=off")
	initial := exec.CommandContext(ctx, program, "init", "--empty-repo", "--profile=test")
	initial.Env = environment
	if _, err := testcache.Output(initial); err != nil {
		return nil, fmt.Errorf("make the repository of the IPFS node: %w", err)
	}
	log, err := os.Create(filepath.Join(folder, "daemon.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	// The shell ends the node when the pipe is closed, which it is when this process is gone.
	n := &IPFS{cmd: exec.Command("sh", "-c", `"$0" daemon --offline & read -r _; kill $!; wait $!`, program)}
	n.cmd.Env, n.cmd.Stdout, n.cmd.Stderr = environment, log, log
	if n.end, err = n.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	if n.URL, err = address(ctx, filepath.Join(folder, "api")); err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, errors.Join(fmt.Errorf("the IPFS node did not start: %w: %s", err, text), n.Stop())
	}
	return n, nil
}

// address waits for the file in which the node says where it listens.
func address(ctx context.Context, file string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			at, err := multiaddr.NewMultiaddr(strings.TrimSpace(string(text)))
			if err != nil {
				return "", err
			}
			_, host, err := manet.DialArgs(at)
			return "http://" + host, err
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Stop ends the node.
func (n *IPFS) Stop() error {
	_ = n.end.Close() // the shell's read ends
	var exit *exec.ExitError
	if err := n.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}
