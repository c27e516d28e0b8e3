package obtain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// The gates of a download (X9).
const (
	maxDownload  = 64 << 20
	idleTime     = 30 * time.Second
	totalTime    = 10 * time.Minute
	maxRedirects = 5
	// progressEvery is the least time between two lines of progress.
	progressEvery = 5 * time.Second
)

// download fetches the file of asset into memory and returns it if its digest is the pinned one.
func (f *Finder) download(ctx context.Context, asset Asset) ([]byte, error) {
	idle, total := idleTime, totalTime
	if f.idle != 0 {
		idle = f.idle
	}
	if f.total != 0 {
		total = f.total
	}
	ctx, cancel := context.WithTimeoutCause(ctx, total, fmt.Errorf("the download is not done after %v", total))
	defer cancel()
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	// Armed before the request: a server that accepts and stays silent is silent too.
	silence := time.AfterFunc(idle, func() { give(fmt.Errorf("no byte arrived for %v", idle)) })
	defer silence.Stop()

	data, err := f.fetch(ctx, asset, func() { silence.Reset(idle) })
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	if sum := digest(data); sum != asset.SHA256 {
		return nil, fmt.Errorf("the %d bytes that arrived have sha256 %s, pinned is %s", len(data), sum, asset.SHA256)
	}
	return data, nil
}

// fetch makes the request and reads the body; heard is called whenever something arrives.
func (f *Finder) fetch(ctx context.Context, asset Asset, heard func()) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, asset.URL, nil)
	if err != nil {
		return nil, err
	}
	if req.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is not https", asset.URL)
	}
	req.Header.Set("Accept-Encoding", "identity") // the pinned digest is that of the file as it is
	req.Header.Set("User-Agent", "a2mcp")
	client, done := f.client(heard)
	defer done()
	f.log().Info("download", "asset", asset.File, "url", asset.URL)
	res, err := client.Do(req)
	if err != nil {
		// The outer error has the address, which after a redirect carries a signature.
		if outer := (*url.Error)(nil); errors.As(err, &outer) {
			err = outer.Err
		}
		return nil, fmt.Errorf("asking %s: %w", req.URL.Host, err)
	}
	defer res.Body.Close()
	heard()
	switch {
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %s", res.Request.URL.Host, res.Status)
	case res.ContentLength > f.most():
		return nil, f.tooLarge()
	}
	return f.readBody(res.Body, asset, heard)
}

func (f *Finder) readBody(body io.Reader, asset Asset, heard func()) ([]byte, error) {
	var data bytes.Buffer
	data.Grow(int(min(asset.Size, maxDownload)))
	chunk := make([]byte, 64<<10)
	told := time.Now()
	for {
		n, err := body.Read(chunk)
		if n > 0 {
			heard()
			data.Write(chunk[:n])
		}
		switch {
		case int64(data.Len()) > f.most():
			return nil, f.tooLarge()
		case err == io.EOF:
			return data.Bytes(), nil
		case err != nil:
			return nil, fmt.Errorf("reading after %d bytes: %w", data.Len(), err)
		}
		if time.Since(told) >= progressEvery {
			told = time.Now()
			percent := int64(data.Len()) * 100 / max(asset.Size, 1)
			f.log().Info("download", "asset", asset.File, "mb", data.Len()>>20, "percent", min(percent, 100))
		}
	}
}

func (f *Finder) most() int64 {
	if f.limit != 0 {
		return f.limit
	}
	return maxDownload
}

func (f *Finder) tooLarge() error {
	return fmt.Errorf("the server sends more than %d MB", f.most()>>20)
}

// client returns a client that stays on https, and what to do when it is no longer needed.
func (f *Finder) client(heard func()) (*http.Client, func()) {
	var client http.Client
	done := func() {}
	if f.Client != nil {
		client = *f.Client
	} else {
		transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
		client.Transport, done = transport, transport.CloseIdleConnections
	}
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		heard()
		switch {
		case req.URL.Scheme != "https":
			return fmt.Errorf("redirected to %s://%s, which is not https", req.URL.Scheme, req.URL.Host)
		case len(via) > maxRedirects:
			return fmt.Errorf("redirected more than %d times", maxRedirects)
		}
		return nil
	}
	return &client, done
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
