/** What is looked at: a picture, a video file or the camera, as an element that can be shown and read. */

export type Media =
  | { kind: "picture"; name: string; element: HTMLImageElement; close: () => void }
  | { kind: "video" | "camera"; name: string; element: HTMLVideoElement; close: () => void };

/** A wider picture is of no use: detectors see some hundred pixels. */
const CAMERA: MediaTrackConstraints = { facingMode: "environment", width: { ideal: 1280 } };

/** A file that somebody chose, dropped or pasted. */
export function openFile(file: File | Blob): Promise<Media> {
  const name = file instanceof File && file.name ? file.name : "the pasted picture";
  return file.type.startsWith("video/") ? openVideo(file, name) : openPicture(file, name);
}

async function openPicture(file: Blob, name: string): Promise<Media> {
  const url = URL.createObjectURL(file);
  const element = new Image();
  element.src = url;
  element.alt = name;
  try {
    await element.decode();
  } catch {
    URL.revokeObjectURL(url);
    throw new Error(`${name} is no picture or video that this browser can read.`);
  }
  return { kind: "picture", name, element, close: () => URL.revokeObjectURL(url) };
}

async function openVideo(file: Blob, name: string): Promise<Media> {
  const url = URL.createObjectURL(file);
  const element = videoElement(name);
  element.loop = true;
  element.controls = true;
  element.src = url;
  const close = () => {
    element.pause();
    URL.revokeObjectURL(url);
  };
  try {
    await ready(element);
  } catch {
    close();
    throw new Error(`${name} is no video that this browser can play.`);
  }
  return { kind: "video", name, element, close };
}

export async function openCamera(): Promise<Media> {
  // Missing on pages that are not secure.
  const devices = navigator.mediaDevices as MediaDevices | undefined;
  if (!devices) throw new Error("This page may not use a camera: open it by https, or on the coordinator's own machine.");
  let stream: MediaStream;
  try {
    stream = await devices.getUserMedia({ video: CAMERA });
  } catch (error) {
    throw new Error(cameraWords(error));
  }
  const element = videoElement("the camera");
  element.srcObject = stream;
  const close = () => {
    for (const track of stream.getTracks()) track.stop();
    element.srcObject = null;
  };
  try {
    await ready(element);
  } catch {
    close();
    throw new Error("The camera gives no picture.");
  }
  return { kind: "camera", name: "the camera", element, close };
}

/** A camera's refusal in words that say what to do. */
export function cameraWords(error: unknown): string {
  const name = error instanceof DOMException ? error.name : "";
  if (name === "NotAllowedError") return "The camera was refused. Allow it for this page in the browser, and try again.";
  if (name === "NotFoundError" || name === "OverconstrainedError") return "This device has no camera.";
  if (name === "NotReadableError") return "The camera is in use by another program.";
  return `The camera cannot be opened: ${error instanceof Error ? error.message : String(error)}`;
}

/** Resolves when there is another frame to look at. */
export function nextFrame(media: Media): Promise<void> {
  return new Promise((resolve) => {
    if (media.kind === "picture") return resolve();
    const { element } = media;
    if ("requestVideoFrameCallback" in element && !element.paused) element.requestVideoFrameCallback(() => resolve());
    else requestAnimationFrame(() => resolve());
    // A video that stands still has no next frame; somebody may move it by hand.
    setTimeout(resolve, 250);
  });
}

function videoElement(name: string): HTMLVideoElement {
  const element = document.createElement("video");
  element.muted = true;
  element.playsInline = true;
  element.setAttribute("aria-label", name);
  return element;
}

async function ready(element: HTMLVideoElement): Promise<void> {
  await new Promise((resolve, reject) => {
    element.addEventListener("loadeddata", resolve, { once: true });
    element.addEventListener("error", reject, { once: true });
  });
  await element.play();
}
