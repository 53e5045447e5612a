// Package devnet gives demos and tests real nodes on loopback: a chain with the real EVM in this process, by go-ethereum's
// simulated backend, and an IPFS node of its own, offline, by the program of kubo.
package devnet

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"

	"github.com/sluice-queue/sluice/apps/conversations/upload"
)

// Chain is a chain of our own, with one rich account and the registry.
type Chain struct {
	// URL is that of its RPC interface.
	URL string
	// Contract is the registry's address.
	Contract string
	// KeyRef refers to the account's key.
	KeyRef string

	backend *simulated.Backend
	stop    chan struct{}
	done    sync.WaitGroup
}

// StartChain starts a chain that makes a block in each period, and keeps the account's key in a file of folder.
func StartChain(ctx context.Context, folder string, period time.Duration) (*Chain, error) {
	key, err := crypto.GenerateKey()
	if err != nil {
		return nil, err
	}
	keyFile := filepath.Join(folder, "account.key")
	if err := os.WriteFile(keyFile, []byte(hexutil.Encode(crypto.FromECDSA(key))), 0o600); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	rich := new(big.Int).Mul(big.NewInt(1_000_000), big.NewInt(1e18))
	account := crypto.PubkeyToAddress(key.PublicKey)
	backend := simulated.NewBackend(types.GenesisAlloc{account: {Balance: rich}}, func(n *node.Config, _ *ethconfig.Config) {
		n.HTTPHost, n.HTTPPort, n.HTTPModules = "127.0.0.1", port, []string{"eth", "net", "web3"}
	})
	c := &Chain{URL: fmt.Sprintf("http://127.0.0.1:%d", port), KeyRef: "file:" + keyFile, backend: backend, stop: make(chan struct{})}
	if err := c.deploy(ctx, key, account); err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	c.done.Go(func() { c.makeBlocks(period) })
	return c, nil
}

// deploy puts the registry on the chain.
func (c *Chain) deploy(ctx context.Context, key *ecdsa.PrivateKey, account common.Address) error {
	client := c.backend.Client()
	id, err := client.ChainID(ctx)
	if err != nil {
		return err
	}
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, GasTipCap: big.NewInt(1e9), GasFeeCap: big.NewInt(1e11), Gas: 500_000, Data: upload.RegistryInit,
	})
	if err != nil {
		return err
	}
	if err := client.SendTransaction(ctx, tx); err != nil {
		return fmt.Errorf("deploy the registry: %w", err)
	}
	c.backend.Commit()
	receipt, err := client.TransactionReceipt(ctx, tx.Hash())
	if err != nil || receipt.Status != types.ReceiptStatusSuccessful {
		return errors.Join(errors.New("the chain refused the registry"), err)
	}
	c.Contract = crypto.CreateAddress(account, 0).Hex()
	return nil
}

func (c *Chain) makeBlocks(period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
			c.backend.Commit()
		}
	}
}

// Stop ends the chain. All of it is gone.
func (c *Chain) Stop() error {
	close(c.stop)
	c.done.Wait()
	return c.backend.Close()
}

// freePort gives a port of loopback that nobody listens on now: below those that the system gives to
// whoever does not name one, or it may be taken again before the chain listens.
func freePort() (int, error) {
	for {
		port := 20000 + rand.IntN(12000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return port, listener.Close()
	}
}
