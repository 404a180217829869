// Tells of changes: told({change: [keys]}), told({hello}), told({online}).
export function listen(told) {
  if (typeof SharedWorker === 'function') {
    const worker = new SharedWorker('/stream.js');
    worker.port.onmessage = ({data}) => told(data);
    worker.port.start();
    addEventListener('pagehide', () => worker.port.postMessage('bye'));
    addEventListener('pageshow', (event) => { if (event.persisted) location.reload(); });
    return;
  }
  const source = new EventSource('/api/stream');
  source.addEventListener('hello', (event) => told({hello: JSON.parse(event.data)}));
  source.addEventListener('change', (event) => told({change: JSON.parse(event.data)}));
  source.onopen = () => told({online: true});
  source.onerror = () => told({online: false});
}
