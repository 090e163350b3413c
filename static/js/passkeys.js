// Passkeys: the form asks the browser for an answer to its options, then sends that.
const able = Boolean(window.PublicKeyCredential?.parseCreationOptionsFromJSON);
for (const form of document.querySelectorAll("form[data-passkey]")) form.hidden = !able;

const answerTo = (kind, options) =>
  kind === "create"
    ? navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
    : navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-passkey]");
  if (!form) return;
  event.preventDefault();
  const problem = form.querySelector("[role=alert]");
  problem.textContent = "";
  try {
    const answer = await answerTo(form.dataset.passkey, JSON.parse(form.dataset.options));
    form.elements.answer.value = JSON.stringify(answer.toJSON());
    form.submit();
  } catch (error) {
    problem.textContent = `The browser gave no passkey: ${error.message}`;
  }
});
