package upload

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"
)

// Chain is an account on a chain, and the registry there.
type Chain struct {
	client   *ethclient.Client
	contract common.Address
	key      *ecdsa.PrivateKey
	id       *big.Int
	// Account is the address that signs.
	Account common.Address
}

// DialChain connects to a node and reads the key by its reference.
func DialChain(ctx context.Context, client *http.Client, url, contract, keyRef string) (*Chain, error) {
	key, err := privateKey(keyRef)
	if err != nil {
		return nil, err
	}
	connection, err := rpc.DialOptions(ctx, url, rpc.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("connect to the chain at %s: %w", url, err)
	}
	c := &Chain{client: ethclient.NewClient(connection), contract: common.HexToAddress(contract), key: key, Account: crypto.PubkeyToAddress(key.PublicKey)}
	if c.id, err = c.client.ChainID(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("ask the chain at %s for its id: %w", url, err)
	}
	return c, nil
}

// Close ends the connection.
func (c *Chain) Close() { c.client.Close() }

// Fees are what a transaction may cost, and the account's next nonce, as the chain knows it.
type Fees struct {
	Tip, Max *big.Int
	Gas      uint64
	Nonce    uint64
}

// Fees asks the chain.
func (c *Chain) Fees(ctx context.Context, id cid.Cid) (Fees, error) {
	var f Fees
	data, err := callData(id)
	if err != nil {
		return f, err
	}
	if f.Tip, err = c.client.SuggestGasTipCap(ctx); err != nil {
		return f, fmt.Errorf("ask the chain for its fees: %w", err)
	}
	head, err := c.client.HeaderByNumber(ctx, nil)
	if err != nil {
		return f, fmt.Errorf("ask the chain for its head: %w", err)
	}
	f.Max = new(big.Int).Add(f.Tip, new(big.Int).Mul(head.BaseFee, big.NewInt(2)))
	f.Gas, err = c.client.EstimateGas(ctx, ethereum.CallMsg{From: c.Account, To: &c.contract, Data: data})
	if err != nil {
		return f, fmt.Errorf("the registry refuses the record: %w", err)
	}
	f.Gas += f.Gas / 5
	if f.Nonce, err = c.client.NonceAt(ctx, c.Account, nil); err != nil {
		return f, fmt.Errorf("ask the chain for the account's nonce: %w", err)
	}
	return f, nil
}

// Known reports whether the registry has a CID's digest.
func (c *Chain) Known(ctx context.Context, id cid.Cid) (bool, error) {
	data, err := callData(id)
	if err != nil {
		return false, err
	}
	who, err := c.client.StorageAt(ctx, c.contract, common.BytesToHash(data[:common.HashLength]), nil)
	if err != nil {
		return false, fmt.Errorf("ask the registry: %w", err)
	}
	return new(big.Int).SetBytes(who).Sign() != 0, nil
}

// Nonce gives the account's next nonce, as the chain knows it.
func (c *Chain) Nonce(ctx context.Context) (uint64, error) {
	nonce, err := c.client.NonceAt(ctx, c.Account, nil)
	if err != nil {
		return 0, fmt.Errorf("ask the chain for the account's nonce: %w", err)
	}
	return nonce, nil
}

// Sign makes the transaction that records a CID. It sends nothing.
func (c *Chain) Sign(id cid.Cid, f Fees, nonce uint64) (raw []byte, hash common.Hash, err error) {
	data, err := callData(id)
	if err != nil {
		return nil, hash, err
	}
	tx, err := types.SignNewTx(c.key, types.LatestSignerForChainID(c.id), &types.DynamicFeeTx{
		ChainID: c.id, Nonce: nonce, GasTipCap: f.Tip, GasFeeCap: f.Max, Gas: f.Gas, To: &c.contract, Data: data,
	})
	if err != nil {
		return nil, hash, fmt.Errorf("sign: %w", err)
	}
	raw, err = tx.MarshalBinary()
	return raw, tx.Hash(), err
}

// callData is what the registry takes: the digest, and the CID behind it.
func callData(id cid.Cid) ([]byte, error) {
	hash, err := multihash.Decode(id.Hash())
	if err != nil {
		return nil, fmt.Errorf("CID %s: %w", id, err)
	}
	return append(common.LeftPadBytes(hash.Digest, 32), id.String()...), nil
}

// Send sends a signed transaction, which may have been sent before. That the chain knows it, or has used its nonce, is no
// error: Receipt tells.
func (c *Chain) Send(ctx context.Context, raw []byte) error {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return fmt.Errorf("the stored transaction cannot be read: %w", err)
	}
	err := c.client.SendTransaction(ctx, tx)
	var answered rpc.Error // the node's own word, and not a failure to reach it
	if errors.As(err, &answered) {
		if _, _, known := c.client.TransactionByHash(ctx, tx.Hash()); known == nil {
			return nil
		}
		if nonce, failed := c.client.NonceAt(ctx, c.Account, nil); failed == nil && nonce > tx.Nonce() {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("send transaction %s: %w", tx.Hash(), err)
	}
	return nil
}

// ErrReplaced says that a transaction can never arrive: its nonce was used by another.
var ErrReplaced = errors.New("another transaction has used the nonce")

// ErrReverted says that the chain has a transaction that changed nothing.
var ErrReverted = errors.New("the registry refused the record")

// Confirmed gives the number of the block that has a transaction; 0: none has it yet.
func (c *Chain) Confirmed(ctx context.Context, hash common.Hash, nonce uint64) (block uint64, err error) {
	used, err := c.client.NonceAt(ctx, c.Account, nil) // before the receipt is looked for: both are of one block
	if err != nil {
		return 0, fmt.Errorf("ask the chain for the account's nonce: %w", err)
	}
	receipt, err := c.client.TransactionReceipt(ctx, hash)
	switch {
	case errors.Is(err, ethereum.NotFound) && used > nonce:
		return 0, fmt.Errorf("transaction %s: %w", hash, ErrReplaced)
	case errors.Is(err, ethereum.NotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("ask the chain for transaction %s: %w", hash, err)
	case receipt.Status != types.ReceiptStatusSuccessful:
		return 0, fmt.Errorf("transaction %s: %w", hash, ErrReverted)
	}
	return receipt.BlockNumber.Uint64(), nil
}

// pollInterval is how often a transaction is looked for.
const pollInterval = 100 * time.Millisecond

// Await waits until a block has a transaction, and sends it again now and then: nodes forget what they cannot take yet.
func (c *Chain) Await(ctx context.Context, raw []byte, hash common.Hash, nonce uint64) (block uint64, err error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for round := 1; ; round++ {
		if block, err = c.Confirmed(ctx, hash, nonce); err != nil || block > 0 {
			return block, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-tick.C:
		}
		if round%50 == 0 {
			if err := c.Send(ctx, raw); err != nil {
				return 0, err
			}
		}
	}
}

// Recorded gives how often the registry has logged each digest, by the CID that was logged.
func (c *Chain) Recorded(ctx context.Context) (map[string]int, error) {
	logs, err := c.client.FilterLogs(ctx, ethereum.FilterQuery{FromBlock: big.NewInt(0), Addresses: []common.Address{c.contract}})
	if err != nil {
		return nil, fmt.Errorf("read the registry's logs: %w", err)
	}
	times := make(map[string]int)
	for _, entry := range logs {
		times[string(entry.Data)]++
	}
	return times, nil
}
