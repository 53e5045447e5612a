package cell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Process is a running cell.
type Process struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
	hold  io.Closer // the process ends when it is closed
}

// Start starts a cell's process. The process shares our standard error, and is killed when ctx ends.
func Start(ctx context.Context, program string, args []string, task Task) (*Process, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), Env+"="+string(text))
	cmd.Stderr = os.Stderr
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a cell: %w", err)
	}
	return &Process{cmd: cmd, lines: bufio.NewReader(out), hold: hold}, nil
}

// Next returns the next result of the process, or an error if the process ends first.
func (p *Process) Next() (Result, error) {
	line, err := p.lines.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		if err := p.cmd.Wait(); err != nil {
			return nil, fmt.Errorf("cell: %w (why is told above)", err)
		}
		return nil, errors.New("cell: it ended without a result")
	}
	if err != nil {
		return nil, fmt.Errorf("cell: %w", err)
	}
	var result Result
	if err := json.Unmarshal(line, &result); err != nil {
		return nil, fmt.Errorf("cell: it said %q: %w", line, err)
	}
	return result, nil
}

// Stop ends the process, if it still runs.
func (p *Process) Stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.hold.Close()
	_ = p.cmd.Wait()
}

// Launch runs a cell and returns its one result.
func Launch(ctx context.Context, program string, args []string, task Task) (Result, error) {
	process, err := Start(ctx, program, args, task)
	if err != nil {
		return nil, err
	}
	defer process.Stop()
	result, err := process.Next()
	if err != nil {
		return nil, err
	}
	return result, ctx.Err()
}
